"""Redacts secrets of jobs on pages, in commands and in logs. The data in Redis is not changed (D55).

1. Arguments are redacted by name, as Django does with settings on its error pages (DEFAULT_EXCEPTION_REPORTER_FILTER).
   Positional arguments have the names of the parameters of the task. If this process does not know the task, all of
   them are redacted.
2. Redacted values are also replaced in texts of the same job: error messages, tracebacks, progress. See Secrets.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django_rtq.jobs.failure import LONGEST_MESSAGE, format_error
from django_rtq.tasks.registry import known_task

if TYPE_CHECKING:
    from django_rtq.inspector.details import JobDetails
    from django_rtq.inspector.jobs.dead_letters import DeadGroup

HIDDEN = "********************"
MIN_LENGTH = 4  # characters of a string, or digits of a number: shorter values occur in too many messages
INSIDE_WORDS = 8  # characters from which a value is replaced inside other words too
CUT_AT_END, CUT_AT_START = (
    200,
    15_000,
)  # longer texts may be cut off at their end, or their beginning
MAX_VALUES = 1000  # values to search for; with more, the whole text is redacted


# -- arguments, by name


def hidden(value: Any, name: str = "") -> Any:
    """A copy in which values of names like "password" and "token" are redacted, at any depth."""
    from django.views.debug import (
        get_exception_reporter_filter,  # imported late: a worker needs it after its first failure only
    )

    hide = getattr(get_exception_reporter_filter(None), "cleanse_setting", None)
    return value if hide is None else hide(name, value)


def hidden_args(task: str, args: Any, *, shows_unknown: bool = False) -> list[Any]:
    """Positional arguments, redacted by the names of the parameters of the task."""
    given = args if isinstance(args, list) else [args]
    registered = known_task(task)
    if registered is None:
        return [hidden(value) if shows_unknown else HIDDEN for value in given]
    names = registered.parameter_names
    return [hidden(value, names[i] if i < len(names) else "") for i, value in enumerate(given)]


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with its defaults redacted by the names of its parameters."""
    signature = inspect.signature(function)
    shown = [
        each if each.default is each.empty else each.replace(default=hidden(each.default, each.name))
        for each in signature.parameters.values()
    ]
    return signature.replace(parameters=shown)


def _shows_plain(task: str) -> bool:
    """Whether no value of a positional argument is redacted as long as it is neither a list nor a dictionary.

    Where the project has its own way to redact, that may depend on the value.
    """
    from django.views.debug import SafeExceptionReporterFilter, get_default_exception_reporter_filter

    registered = known_task(task)
    filter_class: Any = type(get_default_exception_reporter_filter())
    ours: Any = getattr(filter_class, "cleanse_setting", None)
    if registered is None or ours is not SafeExceptionReporterFilter.cleanse_setting:
        return False
    return _shows_names(filter_class, tuple(registered.parameter_names))


@lru_cache(maxsize=1000)
def _shows_names(filter_class: type[Any], names: tuple[str, ...]) -> bool:
    return all(filter_class().cleanse_setting(name, "shown") == "shown" for name in ("", *names))


def is_unknown(task: str) -> bool:
    """Whether this process does not know the task, and so not the names of its parameters."""
    return known_task(task) is None


# -- texts, by value


@dataclass(frozen=True, slots=True)
class Secrets:
    """The redacted values of the arguments of a job, as they may occur in a text. The longest come first.

    Strings of 8 characters or more are replaced everywhere, those of 4 to 7 as whole words only. Shorter ones, numbers
    of less than 4 digits, True, False and None are not replaced, because they occur in too many messages.
    """

    texts: Sequence[str] = ()

    @classmethod
    def of(cls, task: str, args: Any, kwargs: Any, *, shows_unknown: bool = False) -> Secrets:
        """The secrets of a call."""
        given = args if isinstance(args, list) else [args]
        if (calls := _calls_in(given)) is not None:
            texts = {text for call in calls for text in cls.of(task, list(call.args), call.kwargs).texts}
            return cls(sorted(texts.union(cls.of(task, [], kwargs).texts), key=len, reverse=True))
        values: list[Any] = []
        if not all(map(_is_never_replaced, given)) and not (all(map(_is_plain, given)) and _shows_plain(task)):
            values += _hidden_in(given, hidden_args(task, given, shows_unknown=shows_unknown))
        if kwargs:
            values += _hidden_in(kwargs, hidden(kwargs))
        texts_of_values = {text for value in values for text in _written(value)} if values else set()
        return cls(sorted(texts_of_values, key=len, reverse=True))

    def hide(self, text: str) -> str:
        """The text with the secrets replaced."""
        if len(self.texts) > MAX_VALUES and text:
            return HIDDEN
        length, long_ones = len(text), []
        for secret in self.texts:
            if len(secret) >= INSIDE_WORDS:
                long_ones.append(secret)
                text = text.replace(secret, HIDDEN)
            elif secret in text:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
        return _without_ends(text, long_ones, length) if long_ones else text

    def hide_in(self, value: Any) -> Any:
        """A copy of a value with the secrets replaced in all its strings."""
        match value:
            case str():
                return self.hide(value)
            case list():
                return [self.hide_in(item) for item in value]
            case dict():
                return {key: self.hide_in(item) for key, item in value.items()}
        return value

    def hide_in_error(self, error: BaseException) -> BaseException:
        """The error; or, if its texts contain secrets, a redacted copy with the same class name and traceback."""
        if not self.texts:
            return error
        clean = self.hide(_formatted(error, chain=True, clean_cut=self.hide))
        return error if clean == _formatted(error, chain=True) else self._redacted_copy(error)

    def _redacted_copy(self, error: BaseException) -> BaseException:
        made: dict[int, BaseException] = {}
        chain: list[BaseException] = []
        links: list[BaseException | None] = [error]
        while links:
            link = links.pop()
            if link is not None and id(link) not in made:
                made[id(link)] = _like(link, self)
                chain.append(link)
                links += (link.__cause__, link.__context__)
        for link in chain:
            copy = made[id(link)]
            copy.__cause__, copy.__context__ = made.get(id(link.__cause__)), made.get(id(link.__context__))
            copy.__suppress_context__ = link.__suppress_context__
        return made[id(error)]


def _calls_in(args: list[Any]) -> list[Any] | None:
    """The calls that a function with `batch` gets, as middleware sees them."""
    if len(args) == 1 and isinstance(args[0], list) and args[0] and hasattr(args[0][0], "queue_name"):
        return args[0]
    return None


# -- jobs


def redacted(job: JobDetails, *, shows_unknown: bool = False) -> JobDetails:
    """A job with its secrets redacted, except in its stored record, which needs a permission to view."""
    named = {"kwargs": job.kwargs, "headers": job.headers}
    secrets = Secrets.of(job.task, job.args, named, shows_unknown=shows_unknown)
    texts = ("error", "traceback")
    return replace(
        job,
        args=secrets.hide_in(hidden_args(job.task, job.args, shows_unknown=shows_unknown)),
        kwargs=secrets.hide_in(hidden(job.kwargs)),
        headers=secrets.hide_in(hidden(job.headers)),
        result=hidden(job.result),
        steps=[replace(step, result=secrets.hide_in(hidden(step.result, step.name))) for step in job.steps],
        errors=[{k: secrets.hide(str(v)) if k in texts and v else v for k, v in error.items()} for error in job.errors],
        log=[replace(line, logger=secrets.hide(line.logger), text=secrets.hide(line.text)) for line in job.log],
        progress=job.progress and replace(job.progress, text=secrets.hide(str(job.progress.text))),
    )


def group_message(group: DeadGroup) -> str | None:
    """The error message of the newest job of a group; None: its arguments are too long to search for secrets."""
    if group.call is None:
        return None
    return Secrets.of(group.task, group.call.get("args", []), group.call.get("kwargs", {})).hide(group.message)


# -- internals


def _hidden_in(value: Any, shown: Any) -> Iterator[Any]:
    """The values that are redacted in `shown`, without their containers."""
    if isinstance(value, dict) and isinstance(shown, dict):
        for key in value.keys() & shown.keys():
            yield from _hidden_in(value[key], shown[key])
    elif isinstance(value, list) and isinstance(shown, list) and len(value) == len(shown):
        for item, item_shown in zip(value, shown, strict=True):
            yield from _hidden_in(item, item_shown)
    elif shown is not value and shown != value:
        yield from _leaves(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | dict):
        items: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
        for item in items:
            yield from _leaves(item)
    else:
        yield value


def _is_never_replaced(value: Any) -> bool:
    """Whether a value is not searched for, secret or not: see Secrets."""
    return value is None or (type(value) is bool) or (type(value) is int and -1000 < value < 1000)


def _is_plain(value: Any) -> bool:
    """Whether there is nothing in it that has a name of its own."""
    return not isinstance(value, list | tuple | dict)


def _written(value: Any) -> Iterator[str]:
    """How a value may be written in a text: as it is, escaped as in Python and JSON, or quoted in a URL."""
    if value is None or isinstance(value, bool):
        return
    text = str(value)
    if isinstance(value, int | float | Decimal):
        if sum(c.isdigit() for c in text) >= MIN_LENGTH:
            yield text
    elif len(text.strip()) >= MIN_LENGTH:
        escaped = repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
        yield from (text, text.strip(), *escaped, quote(text, safe=""))
        if not isinstance(value, str):
            yield repr(value)


def _without_ends(text: str, secrets: Sequence[str], length: int) -> str:
    """Long texts are stored truncated, so the beginning of a secret may be at their end, and its end at the start.

    `length` is that of the stored text. Of all notations of a secret the one that fits most of the text counts.
    """
    if length < CUT_AT_END:
        return text
    begin = max(_cut_at_start(text, secret) for secret in secrets) if length >= CUT_AT_START else 0
    end = min(_cut_at_end(text, secret) for secret in secrets)
    return f"{HIDDEN if begin else ''}{text[begin:end]}{HIDDEN if end < len(text) else ''}"


def _cut_at_end(text: str, secret: str) -> int:
    """Where the beginning of a secret begins with which the text ends; the length of the text if there is none."""
    at = text.find(secret[:MIN_LENGTH], max(0, len(text) - len(secret)))
    while at >= 0 and not secret.startswith(text[at:]):
        at = text.find(secret[:MIN_LENGTH], at + 1)
    return at if at >= 0 else len(text)


def _cut_at_start(text: str, secret: str) -> int:
    """Where the end of a secret ends with which the text begins; 0 if there is none."""
    end = text.rfind(secret[-MIN_LENGTH:], 0, len(secret))
    while end >= 0 and not secret.endswith(text[: end + MIN_LENGTH]):
        end = text.rfind(secret[-MIN_LENGTH:], 0, end + MIN_LENGTH - 1)
    return end + MIN_LENGTH if end >= 0 else 0


def _like(error: BaseException, secrets: Secrets) -> BaseException:
    """A copy of an error with a redacted message. An exception group has its exceptions in the message."""
    kind = type(error)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__str__": lambda self: self.args[0]}
    notes: Any = vars(error).get("__notes__")
    try:
        is_group = hasattr(error, "exceptions")
        text = _formatted(error, chain=False, clean_cut=secrets.hide) if is_group else str(error)[:LONGEST_MESSAGE]
        notes = [secrets.hide(str(note)[:LONGEST_MESSAGE]) for note in notes] if isinstance(notes, list) else []
    except BaseException as trouble:  # noqa: BLE001 - it is the user's __str__, and this process has to continue
        text, notes = f"<its message could not be made: {type(trouble).__name__}>", []
    copy: BaseException = type(kind.__name__, (Exception,), names)(secrets.hide(text))
    copy.__traceback__ = error.__traceback__
    if notes:
        vars(copy)["__notes__"] = notes
    return copy


def _formatted(error: BaseException, *, chain: bool, clean_cut: Callable[[str], str] = str) -> str:
    try:
        return format_error(error, error.__traceback__, chain=chain, clean_cut=clean_cut)
    except BaseException as trouble:  # noqa: BLE001 - it is the user's __str__ again
        return f"<the traceback could not be made: {type(trouble).__name__}>"
