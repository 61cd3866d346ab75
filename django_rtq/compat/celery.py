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
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import ModuleType
from typing import Any, NoReturn

from django.db import transaction

from django_rtq.compat.celery_canvas import (
    AsyncResult,
    EagerResult,
    GroupResult,
    Signature,
    as_lists,
    chain,
    chord,
    chunks,
    group,
    signature,
    xmap,
    xstarmap,
)
from django_rtq.compat.other_queues import INSTEAD
from django_rtq.core.jobs.context import JobContext, current_job
from django_rtq.core.jobs.job import new_job_id
from django_rtq.core.schedules import Schedule, cron
from django_rtq.core.tasks.decorator import task as rtq_task
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import Bury, ConfigurationError, InvalidTask, Retry, RTQError, TimeLimitExceeded
from django_rtq.workflows.store import workflow_of

SoftTimeLimitExceeded = TimeLimitExceeded
DEFAULT_MAX_RETRIES = 3  # of Celery
DEFAULT_RETRY_DELAY = 180  # seconds; of Celery
_HEADER = "celery"  # retries of the jobs that this one replaces
_WITHOUT_LIMIT = 1_000_000  # retries, for max_retries=None

#: What to do instead of an option of @shared_task without a counterpart.
_INSTEAD = INSTEAD | dict.fromkeys(("link", "link_error"), "Pass it to apply_async().")
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


class _Again(Retry):
    """apply() is to call the function again."""

    request: Request


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
        """The function for workers: without `self`."""

        @functools.wraps(self._function)
        def run(*args: Any, **kwargs: Any) -> Any:
            job = current_job()
            if job is not None and workflow_of(job.job_id):
                args, kwargs = tuple(map(as_lists, args)), {name: as_lists(value) for name, value in kwargs.items()}
            token = _requests.set(None if job is None else self._request_of(job, args, kwargs))
            try:
                return self(*args, **kwargs)
            except (_Replaced, Ignore):
                return None
            except Reject as error:
                raise Bury(str(error)) from error
            finally:
                _requests.reset(token)

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
        **options: Any,
    ) -> AsyncResult:
        """Enqueue a job. Options: those of django_rtq.Task.apply_async(), and `link` and `link_error`.

        Raises InvalidTask for others. With `link` or `link_error` it is a workflow, whose result is that of the job.
        """
        options = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT}
        result: AsyncResult = signature(self, tuple(args or ()), kwargs).apply_async(**options)
        return result

    def delay_on_commit(self, *args: Any, **kwargs: Any) -> None:
        """Enqueue a job when the transaction commits."""
        self.apply_async_on_commit(args, kwargs)

    def apply_async_on_commit(self, *args: Any, **options: Any) -> None:
        """apply_async() when the transaction commits."""
        transaction.on_commit(functools.partial(self.apply_async, *args, **options))

    def replace(self, sig: Any) -> NoReturn:
        """Refused."""
        raise Bury(
            f"{self.name}: self.replace() is not possible, as no job takes the place of another one in its workflow. "
            "Call the function of the other task and return its result, or enqueue it and return."
        )

    def apply(self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Call the function here, and again at once for each retry. The result has get(); an exception is raised there.

        With throw=True it is raised here, by the first call, as Celery does it.
        """
        request = Request(
            id=options.get("task_id") or new_job_id(),
            retries=options.get("retries", 0),
            args=tuple(args or ()),
            kwargs=kwargs or {},
            headers=options.get("headers") or {},
            task=self.name,
            delivery_info={"routing_key": self.rtq_task.queue, "exchange": "", "is_eager": True},
            called_directly=False,
            is_eager=True,
        )
        while True:
            token = _requests.set(request)
            try:
                return EagerResult(self(*request.args, **request.kwargs))
            except Exception as error:
                if options.get("throw"):
                    raise
                again = self._again(error, request)
                if again is None:
                    return EagerResult(error=error)
                request = again
            finally:
                _requests.reset(token)

    def _again(self, error: Exception, request: Request) -> Request | None:
        """The next run of apply() after an exception; None: there is none."""
        if isinstance(error, _Again):
            return error.request
        is_last = self.max_retries is not None and request.retries >= self.max_retries
        if is_last or not isinstance(error, self.rtq_task.retry_on) or isinstance(error, self.rtq_task.give_up_on):
            return None
        return replace(request, retries=request.retries + 1)

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """A call that is to be made later. A result of an earlier one comes before its arguments."""
        return Signature(self.name, args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """The same, without the result of an earlier one."""
        return Signature(self.name, args, kwargs, immutable=True)

    signature = subtask = signature
    map, starmap, chunks = xmap, xstarmap, chunks

    @property
    def request(self) -> Request:
        """The job of the task that runs now, or the call of apply()."""
        request = _requests.get()
        return request if request is not None and request.task == self.name else Request()

    def _request_of(self, job: JobContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Request:
        return Request(
            id=job.job_id,
            retries=int(job.headers.get(_HEADER, {}).get("retries", 0)) + job.attempt - 1,
            args=args,
            kwargs=kwargs,
            headers=job.headers,
            hostname=job.worker,
            task=self.name,
            delivery_info={"routing_key": job.queue_name, "exchange": ""},
            called_directly=False,
            root_id=job.job_id,
        )

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
        if request.is_eager and not throw:
            return None
        if request.is_eager:
            again = _Again(str(exc or ""))
            again.request = replace(
                request,
                retries=request.retries + 1,
                args=_given(args, request.args),
                kwargs=_given(kwargs, request.kwargs),
            )
            raise again from exc
        if eta is not None:
            wait = max(0.0, eta.timestamp() - utc_now().timestamp())
        if args is None and kwargs is None and not options and throw:
            retry = Retry(str(exc or ""), after=wait)
            retry.max_attempts = request.retries + 2  # there is one more, as seen above
            raise retry from exc
        if workflow_of(request.id or ""):
            raise Bury(
                f"{self.name}: retry() with other arguments or options, or with throw=False, is not possible in a "
                "chain or chord, which would go on without the new job. Call retry() without them."
            ) from exc
        header = {**request.headers.get(_HEADER, {}), "retries": request.retries + 1}
        self.apply_async(
            _given(args, request.args),
            _given(kwargs, request.kwargs),
            countdown=wait,
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

#: That of a worker, or the call of Task.apply().
_requests: ContextVar[Request | None] = ContextVar("rtq_celery_request", default=None)


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


def crontab(
    minute: int | str = "*",
    hour: int | str = "*",
    day_of_week: int | str = "*",
    day_of_month: int | str = "*",
    month_of_year: int | str = "*",
) -> Schedule:
    """As cron(), with the fields of Celery."""
    return cron(f"{minute} {hour} {day_of_month} {month_of_year} {day_of_week}")


def get_task_logger(name: str) -> logging.Logger:
    """A logger."""
    return logging.getLogger(name)


_MODULES: dict[str, dict[str, Any]] = {
    "celery": {
        "Celery": Celery, "Task": Task, "chain": chain, "chord": chord, "chunks": chunks, "group": group,
        "shared_task": shared_task, "xmap": xmap, "xstarmap": xstarmap,
        "signature": signature, "subtask": signature, "__version__": "5.7.0",
    },
    "celery.app": {"shared_task": shared_task},
    "celery.app.task": {"Task": Task},
    "celery.canvas": {
        "Signature": Signature, "chain": chain, "chord": chord, "chunks": chunks, "group": group,
        "signature": signature, "subtask": signature, "xmap": xmap, "xstarmap": xstarmap,
    },
    "celery.contrib": {},
    "celery.contrib.django": {},
    "celery.contrib.django.task": {"DjangoTask": Task},
    "celery.exceptions": {
        "Ignore": Ignore, "MaxRetriesExceededError": MaxRetriesExceededError, "Reject": Reject, "Retry": Retry,
        "SoftTimeLimitExceeded": SoftTimeLimitExceeded, "TimeLimitExceeded": TimeLimitExceeded,
    },
    "celery.result": {"AsyncResult": AsyncResult, "EagerResult": EagerResult, "GroupResult": GroupResult},
    "celery.schedules": {"crontab": crontab},
    "celery.signals": {},
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
        missing = functools.partial(_missing, name)
        # Python names the file when an import of a name fails.
        vars(module).update(attributes, is_stand_in=True, __path__=[], __file__=__file__, __getattr__=missing)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _missing(module: str, name: str) -> NoReturn:
    if module == "celery.signals" and not name.startswith("_"):
        raise ImportError(f"{module}.{name} has no counterpart in django_rtq. Connect to django_rtq.signals instead.")
    raise AttributeError(f"{module}.{name} has no counterpart in django_rtq.compat.celery, which stands in for celery.")
