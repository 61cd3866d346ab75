"""Tasks that were written for Celery, run by django_rtq: `from django_rtq.compat.celery import shared_task`.

For apps that cannot be edited, RTQ["CELERY_STAND_IN"] = True makes this module take the place of the package `celery`.
Code of your own is better moved to @task: docs/coming-from.md has both spellings side by side.

What has no counterpart is refused with a sentence, where the task is declared or called.
"""

from __future__ import annotations

import functools
import inspect
import logging
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import ModuleType
from typing import Any, NoReturn

from django_rtq.exceptions import (
    Bury,
    ConfigurationError,
    InvalidTask,
    JobFailed,
    JobNotFound,
    Retry,
    RTQError,
    TimeLimitExceeded,
)
from django_rtq.handle import JobHandle
from django_rtq.jobs.context import current_job
from django_rtq.jobs.job import JobState
from django_rtq.tasks import registry
from django_rtq.tasks.decorator import task as rtq_task
from django_rtq.tasks.other_queues import INSTEAD

SoftTimeLimitExceeded = TimeLimitExceeded
DEFAULT_MAX_RETRIES = 3  # of Celery
DEFAULT_RETRY_DELAY = 180  # seconds; of Celery
_WITHOUT_LIMIT = 1_000_000  # retries, for max_retries=None
_HEADER = "celery"  # retries of the jobs that this one replaces, and what is enqueued after it

#: What to do instead of an option of @shared_task without a counterpart.
_REFUSED = ("base", "rate_limit", "typing", "serializer", "compression", "link_error")
_INSTEAD = {**{name: INSTEAD[name] for name in _REFUSED}, "link": "Pass link= to apply_async()."}
_NAMES = {"queue": "queue_name", "name": "name", "priority": "priority", "expires": "expires"}  # as @task has them
_KNOWN = {
    *("bind", "acks_late", "ignore_result", "time_limit", "soft_time_limit"),
    *("autoretry_for", "dont_autoretry_for", "max_retries", "default_retry_delay", "retry_kwargs"),
    *("retry_backoff", "retry_backoff_max", "retry_jitter"),
    *_NAMES,
}
_WITHOUT_EFFECT = {
    "track_started",
    "store_errors_even_if_ignored",
    "reject_on_worker_lost",
    "acks_on_failure_or_timeout",
}


class Ignore(RTQError):
    """Raised by a task: the run ends as a success without a result."""


class Reject(RTQError):
    """Raised by a task: its job is a dead letter at once."""


class MaxRetriesExceededError(RTQError):
    """The task has no retries left."""


class _Replaced(Retry):
    """Another job was enqueued in place of this one, with other arguments."""


# -- tasks


class Task:
    """A task with the methods and attributes of Celery's."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._function = function
        self._is_bound = bool(options.get("bind"))
        self.max_retries: int | None = options.get("max_retries", DEFAULT_MAX_RETRIES)
        self.default_retry_delay: float = options.get("default_retry_delay", DEFAULT_RETRY_DELAY)
        functools.update_wrapper(self, function)
        declare: Any = rtq_task(**_rtq_options(self, options))
        self.rtq_task = declare(self._runnable())
        self.name = self.rtq_task.name

    def _runnable(self) -> Callable[..., Any]:
        """The function for workers: without `self`, and with what follows a success."""

        @functools.wraps(self._function)
        def run(*args: Any, **kwargs: Any) -> Any:
            token = _arguments.set((args, kwargs))
            try:
                result = self(*args, **kwargs)
            except (_Replaced, Ignore):
                return None
            except Reject as error:
                raise Bury(str(error)) from error
            finally:
                _arguments.reset(token)
            for link in _header().get("links", ()):
                Signature.from_dict(link).apply_async((result,))
            return result

        if self._is_bound:
            signature = inspect.signature(self._function)
            run.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
        return run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function here."""
        return self._function(self, *args, **kwargs) if self._is_bound else self._function(*args, **kwargs)

    run = __call__

    def delay(self, *args: Any, **kwargs: Any) -> AsyncResult:
        """Enqueue a job."""
        return self.apply_async(args, kwargs)

    def apply_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        link: Signature | Sequence[Signature] | None = None,
        **options: Any,
    ) -> AsyncResult:
        """Enqueue a job. Options: those of django_rtq.Task.apply_async(), and `link`. Raises InvalidTask for others."""
        options = {name: value for name, value in options.items() if value is not None and name not in _WITHOUT_EFFECT}
        links = [link] if isinstance(link, Signature) else list(link or ())
        if links:
            header = {**options.get("headers", {}).get(_HEADER, {}), "links": [one.as_dict() for one in links]}
            options["headers"] = {**options.get("headers", {}), _HEADER: header}
        changed = self.rtq_task.using(result_ttl=0) if options.pop("ignore_result", False) else self.rtq_task
        return AsyncResult.of(changed.apply_async(args, kwargs, **options))

    def apply(self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Call the function here. The result has get(); an exception is raised there, unless options say throw."""
        try:
            return EagerResult(self(*(args or ()), **(kwargs or {})))
        except Exception as error:
            if options.get("throw"):
                raise
            return EagerResult(error=error)

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """A call that is to be made later. A result of an earlier one comes before its arguments."""
        return Signature(self.name, args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """The same, without the result of an earlier one."""
        return Signature(self.name, args, kwargs, immutable=True)

    def signature(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any) -> Signature:
        """A call that is to be made later, with options of apply_async()."""
        immutable = bool(options.pop("immutable", False))
        return Signature(self.name, tuple(args), dict(kwargs or {}), options, immutable=immutable)

    subtask = signature

    @property
    def request(self) -> Request:
        """The job that runs now."""
        return Request.current()

    def retry(  # noqa: PLR0913, PLR0917 - as Celery declares it
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        exc: BaseException | None = None,
        throw: bool = True,
        eta: datetime | None = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> Any:
        """End this run, and run the job again: after `countdown` seconds, at `eta`, or after default_retry_delay.

        With other arguments, other options or throw=False another job takes its place. Raises `exc`, or
        MaxRetriesExceededError, if no retries are left, and outside a job.
        """
        request = self.request
        if request.called_directly:
            raise exc or Retry("retry() was called outside a job")
        most, wait = _given(max_retries, self.max_retries), _given(countdown, self.default_retry_delay)
        if most is not None and request.retries >= most:
            raise exc or MaxRetriesExceededError(f"{self.name}: no retries are left after {most}.")
        is_same_job = all(value is None for value in (args, kwargs, eta, max_retries)) and not options and throw
        if is_same_job:
            raise Retry(str(exc or ""), after=wait) from exc
        header = {**_header(), "retries": request.retries + 1}
        self.apply_async(
            _given(args, request.args),
            _given(kwargs, request.kwargs),
            **{"countdown": wait} if eta is None else {"eta": eta},
            **{"queue": request.delivery_info["routing_key"], **options},
            headers={**request.headers, _HEADER: header},
        )
        if throw:
            raise _Replaced(str(exc or "")) from exc
        return None

    def update_state(self, *, state: str = "", meta: Any = None, **options: Any) -> None:
        """Report progress, from the numbers `current` or `done` and `total` of `meta`, if it has them."""
        job, numbers = current_job(), meta if isinstance(meta, Mapping) else {}
        done, total = numbers.get("current", numbers.get("done")), numbers.get("total")
        if job is not None and isinstance(done, int | float):
            job.progress(done, total if isinstance(total, int | float) else None, state)

    @staticmethod
    def get_logger(name: str = "") -> logging.Logger:
        """A logger."""
        return logging.getLogger(name or "django_rtq.tasks")

    def __repr__(self) -> str:
        return f"<@shared_task {self.name}>"


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


def shared_task(*functions: Callable[..., Any], **options: Any) -> Any:
    """Declare a function as a task: ``@shared_task``, or ``@shared_task(bind=True, max_retries=5, …)``."""
    if not functions:
        return lambda function: Task(function, options)
    return Task(functions[0], options)


def _rtq_options(task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of @task. Raises InvalidTask for those that have no counterpart."""
    given = {name: value for name, value in options.items() if value is not None and name not in _WITHOUT_EFFECT}
    unknown = given.keys() - _KNOWN
    if unknown:
        name = min(unknown)
        raise InvalidTask(f"@shared_task({name}=…) has no counterpart in django_rtq. {_INSTEAD.get(name, '')}".rstrip())
    retry_kwargs = {**given.pop("retry_kwargs", {})}
    task.max_retries = retry_kwargs.get("max_retries", task.max_retries)
    retries = _WITHOUT_LIMIT if task.max_retries is None else int(task.max_retries)
    limit = given.get("soft_time_limit") or given.get("time_limit")
    rtq: dict[str, Any] = {
        "max_attempts": retries + 1,
        "backoff": _backoff(task, given, retry_kwargs.get("countdown")),
        "retry_on": tuple(given.get("autoretry_for", ())),
        "give_up_on": tuple(given.get("dont_autoretry_for", ())),
        "max_crashes": None if given.get("acks_late") else 0,
        **{ours: given[name] for name, ours in _NAMES.items() if name in given},
    }
    if limit:
        rtq["time_limit"] = limit
    if given.get("ignore_result"):
        rtq["result_ttl"] = 0
    return rtq


def _backoff(task: Task, options: dict[str, Any], countdown: float | None) -> Callable[[int], float]:
    """Celery's delays: factor * 2 ** retries, at most retry_backoff_max, a random part of it with retry_jitter.

    The formula is that of celery.utils.time.get_exponential_backoff_interval(), as Celery documents it.
    """
    factor = options.get("retry_backoff", False)
    most, jitter = options.get("retry_backoff_max", 600), options.get("retry_jitter", True)

    def seconds(failures: int) -> float:
        if not factor:
            return task.default_retry_delay if countdown is None else countdown
        longest = min(most, int(factor) * 2 ** min(failures - 1, 60))
        return random.uniform(0, longest) if jitter else longest

    return seconds


# -- the job that runs

_arguments: ContextVar[tuple[Sequence[Any], Mapping[str, Any]]] = ContextVar("rtq_celery_arguments", default=((), {}))


def _header() -> dict[str, Any]:
    job = current_job()
    return {} if job is None else dict(job.headers.get(_HEADER, {}))


@dataclass(frozen=True, slots=True)
class Request:
    """The job that runs, with the names of Celery."""

    id: str | None = None
    retries: int = 0
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    hostname: str = ""
    task: str = ""
    delivery_info: Mapping[str, Any] = field(default_factory=dict)
    called_directly: bool = True
    is_eager: bool = False
    root_id: str | None = None
    parent_id: str | None = None

    @classmethod
    def current(cls) -> Request:
        """That of this thread or coroutine."""
        job = current_job()
        if job is None:
            return cls()
        args, kwargs = _arguments.get()
        return cls(
            id=job.job_id,
            retries=int(_header().get("retries", 0)) + job.attempt - 1,
            args=args,
            kwargs=kwargs,
            headers=job.headers,
            hostname=job.worker,
            task=job.task_name,
            delivery_info={"routing_key": job.queue_name, "exchange": ""},
            called_directly=False,
            root_id=job.job_id,
        )


# -- calls that are made later


@dataclass(frozen=True)
class Signature:
    """A call that is to be made later. `a.s(1) | b.s()` calls b with the result of a."""

    task: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    immutable: bool = False
    links: Sequence[Signature] = ()

    def delay(self, *args: Any, **kwargs: Any) -> AsyncResult:
        """Enqueue a job. These arguments come before those of the signature."""
        return self.apply_async(args, kwargs)

    def apply_async(
        self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncResult:
        """Enqueue a job. Raises what Task.apply_async() raises."""
        given = () if self.immutable else tuple(args or ())
        options = {**self.options, **options}
        if self.links:
            options["headers"] = {
                **options.get("headers", {}),
                _HEADER: {"links": [link.as_dict() for link in self.links]},
            }
        ignores = options.pop("ignore_result", False)
        task = registry.get_task(self.task)
        task = task.using(result_ttl=0) if ignores else task
        named = {} if self.immutable else dict(kwargs or {})
        return AsyncResult.of(task.apply_async((*given, *self.args), {**self.kwargs, **named}, **options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function here."""
        return registry.get_task(self.task)(*args, *self.args, **{**self.kwargs, **kwargs})

    def set(self, *, immutable: bool | None = None, **options: Any) -> Signature:
        """A copy with other options of apply_async()."""
        return replace(
            self,
            options={**self.options, **options},
            immutable=self.immutable if immutable is None else immutable,
        )

    def clone(self) -> Signature:
        """A copy."""
        return self

    def __or__(self, other: Signature) -> Signature:
        return replace(self, links=[self.links[0] | other, *self.links[1:]] if self.links else [other])

    def as_dict(self) -> dict[str, Any]:
        """As JSON, for from_dict()."""
        return {
            "task": self.task,
            "args": list(self.args),
            "kwargs": dict(self.kwargs),
            "options": dict(self.options),
            "immutable": self.immutable,
            "links": [link.as_dict() for link in self.links],
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Signature:
        """The signature that as_dict() wrote."""
        return cls(**{**value, "links": [cls.from_dict(link) for link in value["links"]]})


def signature(
    task: str | Task, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
) -> Signature:
    """A call of a task, or of the task of this name."""
    return Signature(task if isinstance(task, str) else task.name, tuple(args), dict(kwargs or {}), options)


def chain(*signatures: Signature | Iterable[Signature]) -> Signature:
    """One after another: each gets the result of the one before."""
    links = [one for part in signatures for one in ([part] if isinstance(part, Signature) else part)]
    return functools.reduce(lambda first, second: first | second, links)


class group:
    """Several calls at once."""

    def __init__(self, *signatures: Signature | Iterable[Signature]) -> None:
        self.tasks = [one for part in signatures for one in ([part] if isinstance(part, Signature) else part)]

    def apply_async(self, **options: Any) -> GroupResult:
        """Enqueue a job for each."""
        return GroupResult([one.apply_async(**options) for one in self.tasks])

    delay = __call__ = apply_async

    def __or__(self, other: object) -> NoReturn:
        _refuse_chord()


def chord(*args: Any, **options: Any) -> NoReturn:
    """Refused."""
    _refuse_chord()


def _refuse_chord() -> NoReturn:
    raise InvalidTask(
        "A call after all jobs of a group (chord) has no counterpart in django_rtq yet. Enqueue the next job at the "
        "end of the last one, for example when a counter in your database says that it was the last."
    )


# -- results

_STATES = {
    JobState.RUNNING: "STARTED",
    JobState.RETRYING: "RETRY",
    JobState.SUCCEEDED: "SUCCESS",
    JobState.DEAD: "FAILURE",
    JobState.CANCELLED: "REVOKED",
    JobState.EXPIRED: "REVOKED",
}


class AsyncResult:
    """A job, with the methods of Celery's AsyncResult."""

    def __init__(self, id: str, *, queue: str = "") -> None:
        self.id = self.task_id = id
        self._handle = JobHandle[Any](id, queue) if queue else _find(id)

    @classmethod
    def of(cls, handle: JobHandle[Any]) -> AsyncResult:
        """For a handle of delay()."""
        result = cls.__new__(cls)
        result.id = result.task_id = handle.id
        result._handle = handle
        return result

    @property
    def state(self) -> str:
        """PENDING, STARTED, RETRY, SUCCESS, FAILURE or REVOKED. PENDING also for a job that is not known any more."""
        state = self._handle.state if self._handle is not None else None
        return _STATES.get(state, "PENDING") if state is not None else "PENDING"

    status = state

    def ready(self) -> bool:
        """Whether it is over."""
        return self.state in {"SUCCESS", "FAILURE", "REVOKED"}

    def successful(self) -> bool:
        """Whether it has succeeded."""
        return self.state == "SUCCESS"

    def failed(self) -> bool:
        """Whether it has failed for good."""
        return self.state == "FAILURE"

    def get(self, timeout: float | None = None, propagate: bool = True, **options: Any) -> Any:
        """Wait for the result. Raises JobFailed unless `propagate` is off, and ResultTimeout."""
        if self._handle is None:
            raise InvalidTask(f"Job {self.id} is not known.")
        try:
            return self._handle.get(timeout=timeout)
        except JobFailed as error:
            if propagate:
                raise
            return error

    wait = get

    @property
    def result(self) -> Any:
        """The result, or the error; None if it is not over."""
        return self.get(timeout=0, propagate=False) if self.ready() else None

    def revoke(self, terminate: bool = False, **options: Any) -> None:
        """Cancel it; with `terminate` also while it runs."""
        if self._handle is not None:
            self._handle.cancel(terminate=terminate)

    def forget(self) -> None:
        """Does nothing: results expire."""

    def __repr__(self) -> str:
        return f"<AsyncResult: {self.id}>"


class GroupResult(list[AsyncResult]):
    """The jobs of a group."""

    def ready(self) -> bool:
        """Whether all are over."""
        return all(one.ready() for one in self)

    def successful(self) -> bool:
        """Whether all have succeeded."""
        return all(one.successful() for one in self)

    def get(self, timeout: float | None = None, propagate: bool = True, **options: Any) -> list[Any]:
        """Wait for all results, each for at most `timeout` seconds."""
        return [one.get(timeout, propagate) for one in self]

    join = get

    @property
    def results(self) -> list[AsyncResult]:
        """The single ones."""
        return list(self)


class EagerResult:
    """What apply() returns."""

    def __init__(self, value: Any = None, *, error: Exception | None = None) -> None:
        self.result = value if error is None else error
        self.state = self.status = "SUCCESS" if error is None else "FAILURE"
        self._error = error

    def get(self, timeout: float | None = None, propagate: bool = True, **options: Any) -> Any:
        """The result. Raises what the function raised."""
        if self._error is not None and propagate:
            raise self._error
        return self.result

    def ready(self) -> bool:
        """True."""
        return True

    def successful(self) -> bool:
        """Whether the function has returned."""
        return self._error is None

    def failed(self) -> bool:
        """Whether the function has raised."""
        return self._error is not None


def _find(job_id: str) -> JobHandle[Any] | None:
    from django_rtq.inspector.inspector import get_inspector  # processes that only enqueue do not import it

    try:
        return JobHandle(job_id, get_inspector().find(job_id).queue)
    except JobNotFound:
        return None


# -- the app, and the modules of the package


class Celery:
    """Stands in for the app of a project: its tasks are shared tasks, and its settings are not read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.conf: dict[str, Any] = {}

    def task(self, *functions: Callable[..., Any], **options: Any) -> Any:
        """As shared_task()."""
        return shared_task(*functions, **options)

    def config_from_object(self, *args: Any, **options: Any) -> None:
        """Does nothing."""

    def autodiscover_tasks(self, *args: Any, **options: Any) -> None:
        """Does nothing: RTQ["TASK_MODULES"] says which modules are imported."""


def get_task_logger(name: str) -> logging.Logger:
    """A logger."""
    return logging.getLogger(name)


_MODULES: dict[str, dict[str, Any]] = {
    "celery": {
        "Celery": Celery, "Task": Task, "chain": chain, "chord": chord, "group": group, "shared_task": shared_task,
        "signature": signature, "subtask": signature, "__version__": "5.7.0",
    },
    "celery.app": {"shared_task": shared_task},
    "celery.app.task": {"Task": Task},
    "celery.canvas": {"Signature": Signature, "chain": chain, "chord": chord, "group": group, "signature": signature},
    "celery.exceptions": {
        "Ignore": Ignore, "MaxRetriesExceededError": MaxRetriesExceededError, "Reject": Reject, "Retry": Retry,
        "SoftTimeLimitExceeded": SoftTimeLimitExceeded, "TimeLimitExceeded": TimeLimitExceeded,
    },
    "celery.result": {"AsyncResult": AsyncResult, "EagerResult": EagerResult, "GroupResult": GroupResult},
    "celery.utils": {},
    "celery.utils.log": {"get_task_logger": get_task_logger, "get_logger": get_task_logger},
}  # fmt: skip


def stand_in() -> None:
    """Take the place of the package `celery` in this process. Raises ConfigurationError if that is already imported."""
    existing = sys.modules.get("celery")
    if existing is not None and not hasattr(existing, "is_stand_in"):
        raise ConfigurationError(
            'RTQ["CELERY_STAND_IN"] is on, but the package celery is already imported. Remove the import, for example '
            "that of the Celery app in the __init__.py of your project."
        )
    for name, attributes in _MODULES.items():
        module = ModuleType(name, "Stands in for the package celery: django_rtq.compat.celery")
        vars(module).update(attributes, is_stand_in=True, __path__=[], __getattr__=functools.partial(_missing, name))
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _missing(module: str, name: str) -> NoReturn:
    raise AttributeError(f"{module}.{name} has no counterpart in django_rtq.compat.celery, which stands in for celery.")
