"""Task: a function with the options of its jobs. Enqueues calls of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from asgiref.sync import sync_to_async

from django_rtq.conf.config import get_config
from django_rtq.exceptions import InvalidTask
from django_rtq.handle import JobHandle
from django_rtq.jobs.context import JobContext
from django_rtq.schedules import Schedule, schedules_option
from django_rtq.tasks.apply_async import CeleryOptions, apply_async
from django_rtq.tasks.declaration import aliases_option, check_function, name_option, shown_attributes, task_repr
from django_rtq.tasks.django_tasks import as_django_task
from django_rtq.tasks.enqueuing import checked_calls, enqueue, enqueue_unique
from django_rtq.tasks.exactly_once import ExactlyOnce, database_option
from django_rtq.tasks.new_jobs import WORKER_OPTIONS, check_call, new_job, new_unique_job, write_options
from django_rtq.tasks.options.backoff import DEFAULT, Backoff
from django_rtq.tasks.options.signature import Signature, signature_of
from django_rtq.tasks.options.types import USING_NAMES, UsingOptions
from django_rtq.tasks.options.uniqueness import (
    DAY_SECONDS,
    UNIQUE_OPTIONS,
    OnConflict,
    Uniqueness,
    UniqueOption,
    Until,
    uniqueness_of,
)
from django_rtq.tasks.options.values import (
    NORMALIZERS,
    ClientOption,
    Moment,
    backoff_option,
    check_errors,
    check_flag,
    moment_argument,
)
from django_rtq.tasks.patching import with_patchable_methods
from django_rtq.tasks.task_call import asend_call, send_call, send_through_middleware, uses_middleware
from django_rtq.transactions.rules import OnCommit, explicit_database

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
Calls = Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
Errors = tuple[type[BaseException], ...]


@with_patchable_methods
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Task(Generic[P, R_co]):
    """A function with the options of its jobs. An option that is None has the default of the settings."""

    func: Callable[P, R_co]
    name: str = ""  # by which workers find the task; "": module and name of the function
    aliases: Sequence[str] = ()  # other names, of jobs that were enqueued before it was renamed
    queue_name: str = ""
    client: ClientOption = ""
    priority: int = 0
    max_attempts: int | None = None
    max_crashes: int | None = None
    backoff: Backoff = DEFAULT
    retry_on: Errors = (Exception,)
    give_up_on: Errors = ()
    time_limit: float | None = None  # seconds
    expires: Moment | None = None
    at_front: bool = False
    takes_context: bool = False
    exactly_once: bool | str = ""  # an alias of DATABASES; "": no
    result_ttl: float | None = None  # seconds
    keep_args: bool | None = None  # with the result
    schedule: Sequence[Schedule] = ()
    unique: UniqueOption = False
    unique_until: Until = "done"
    unique_seconds: float = DAY_SECONDS
    unique_on_conflict: OnConflict = "return"
    on_commit: OnCommit = None
    run_after: Moment | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    keeps_call: bool = False  # arguments and failures are kept with results; not for @task
    internal: bool = False  # operators cannot enqueue its jobs; not for @task
    backend: str = ""  # in TASKS, whose Redis gets the jobs; "": RTQ["REDIS"]; not for @task
    changed: frozenset[str] = frozenset()  # options that using() set

    def __post_init__(self) -> None:
        check_function(self.func)
        self._set(name=name_option(self.func, self.name))
        self._set(
            aliases=aliases_option(self.name, self.func, self.aliases),
            backoff=backoff_option(self.name, self.backoff),
            retry_on=check_errors(self.name, "retry_on", self.retry_on),
            give_up_on=check_errors(self.name, "give_up_on", self.give_up_on),
            schedule=schedules_option(self.name, self.schedule),
            exactly_once=database_option(self.name, self.exactly_once, self.func),
        )
        check_flag(self.name, "takes_context", self.takes_context)
        check_flag(self.name, "keep_args", False if self.keep_args is None else self.keep_args)
        self._set(**shown_attributes(self.func, takes_context=self.takes_context))
        _ = self.call_signature  # created here, so that invalid options raise at import time
        for entry in self.schedule:
            check_call(self, entry.args, dict(entry.kwargs))
        self._check_options(USING_NAMES)

    def _check_options(self, names: Iterable[str]) -> None:
        for name in names:
            if name in NORMALIZERS:
                self._set(**{name: NORMALIZERS[name](self.name, getattr(self, name))})
        _ = self.due, self.expires_in, self.uniqueness  # created here, so that invalid options raise at import time
        if self.at_front and self.run_after is not None:
            raise InvalidTask(
                f"{self.name}: at_front and run_after exclude each other. When a delayed job is due, it goes to the "
                'end of its client\'s lane. To serve delayed jobs before others, set "delayed_first" in RTQ["QUEUES"].'
            )
        if "client" in names and callable(self.client):
            self.call_signature.check_applies("client", self.client)

    # -- properties

    @cached_property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function, which runs on the event loop of a worker."""
        return inspect.iscoroutinefunction(self.func)

    @cached_property
    def body(self) -> Callable[..., Any]:
        """What workers call: the function, with exactly_once in a transaction."""
        return self._in_transaction(self.func)

    @property
    def queue(self) -> str:
        """The name of the queue of its jobs."""
        return self.queue_name or get_config().default_queue

    @property
    def parameter_names(self) -> Sequence[str]:
        """The names of the positional parameters."""
        return self.call_signature.names

    # -- calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function directly, in this process."""
        if self.takes_context:
            return self.func(JobContext(), *args, **kwargs)  # type: ignore[arg-type]
        return self.func(*args, **kwargs)

    @overload
    def delay(self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> JobHandle[T]: ...

    @overload
    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """Enqueue a job that calls the function in a worker. When this returns, the job is stored in Redis (G1).

        Raises TypeError if the arguments do not match the signature, PayloadError if they cannot be stored,
        BrokerUnavailable (the job may be stored), BrokerFull and QueueFull (it is not). If the task is unique and a job
        like it exists, returns that job with `duplicate=True`, or raises DuplicateJob, as unique_on_conflict says.
        """
        if uses_middleware(self):
            return send_through_middleware(self, [(args, kwargs)])[0]
        if self.uniqueness is not None:
            return enqueue_unique(self, [new_unique_job(self, args, kwargs)])[0]
        return enqueue(self, [new_job(self, args, kwargs)])[0]

    @overload
    async def adelay(self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> JobHandle[T]: ...

    @overload
    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """delay() for coroutines. Calls of one event loop that come together are sent together.

        If it is cancelled, the job may be stored all the same. The functions of `client` and `unique` run on the event
        loop.
        """
        return (await asend_call(self, [(args, kwargs)]))[0]

    @overload
    def delay_on_commit(self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> JobHandle[T]: ...

    @overload
    def delay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    def delay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """delay() when the open transaction commits; at once if none is open, and not at all after a rollback.

        The database is that of the option on_commit, else that of RTQ["ENQUEUE_ON_COMMIT"], else the default one.
        The arguments are checked now. A job that cannot be sent raises BrokerError after the commit. For unique jobs,
        unique_on_conflict="raise" means "return", and the handle is corrected after the commit.
        """
        return self.using(on_commit=explicit_database(self.on_commit)).delay(*args, **kwargs)

    @overload
    async def adelay_on_commit(
        self: Task[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[T]: ...

    @overload
    async def adelay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    async def adelay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """delay_on_commit() for async code."""
        return await sync_to_async(self.delay_on_commit, thread_sensitive=True)(*args, **kwargs)

    def apply_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[CeleryOptions],
    ) -> JobHandle[Any]:
        """delay() with the options of Celery: `countdown` or `eta`, `expires`, `queue`, `priority`, `time_limit`.

        `expires` counts from now. Jobs of a higher `priority` run first. Raises InvalidTask for others, and what
        delay() raises.
        """
        return apply_async(self, args, kwargs, options)

    @overload
    def delay_many(
        self: Task[P, Coroutine[Any, Any, T]], calls: Calls, *, all_or_none: bool = ...
    ) -> list[JobHandle[T]]: ...

    @overload
    def delay_many(self, calls: Calls, *, all_or_none: bool = ...) -> list[JobHandle[R_co]]: ...

    def delay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[Any]]:
        """Enqueue many jobs, given as (args, kwargs) each: one round trip for a few hundred.

        All arguments are checked before the first job is sent. Raises what delay() raises; QueueFull has the handles
        of those jobs that were stored. `all_or_none`: if one job does not fit, no job is stored; at most 500 jobs, or
        100 of a unique task, else it raises ValueError.
        """
        return send_call(self, checked_calls(self.name, calls), all_or_none)

    @overload
    async def adelay_many(
        self: Task[P, Coroutine[Any, Any, T]], calls: Calls, *, all_or_none: bool = ...
    ) -> list[JobHandle[T]]: ...

    @overload
    async def adelay_many(self, calls: Calls, *, all_or_none: bool = ...) -> list[JobHandle[R_co]]: ...

    async def adelay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[Any]]:
        """delay_many() for coroutines."""
        return await asend_call(self, checked_calls(self.name, calls), all_or_none)

    def using(self, **options: Unpack[UsingOptions]) -> Task[P, R_co]:
        """A copy of the task with other options for some calls: those of @task, `run_after` and `headers`.

        `run_after`: seconds, a timedelta or an aware datetime. `headers`: a dictionary of at most 4 kB of JSON, added
        to those of the task; None removes them. Raises InvalidTask. `backoff`, `retry_on` and `give_up_on` cannot be
        changed: workers read them from the task.
        """
        for name in options:
            if name not in USING_NAMES:
                allowed = ", ".join(sorted(USING_NAMES))
                raise InvalidTask(f"{self.name}: using() does not take {name!r}. It takes: {allowed}.")
        if options.get("headers") and isinstance(options["headers"], Mapping):
            options["headers"] = {**self.headers, **options["headers"]}
        copy = object.__new__(type(self))
        values = copy.__dict__
        values.update(self.__dict__)  # also what is cached, unless it depends on these options
        for name in _METHODS.intersection(values):
            del values[name]  # replaced by a test
        for name in _CACHES.keys() & options:
            values.pop(_CACHES[name], None)
        values.update(options, changed=self.changed | options.keys())
        copy._check_options(options)
        return copy

    # -- through django.tasks

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Enqueue a job through our backend in TASKS. Returns a TaskResult of django.tasks.

        Raises ConfigurationError if TASKS has no such backend, TypeError for arguments that are not plain JSON, and
        what delay() raises.
        """
        return as_django_task(self).enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """enqueue() for async code."""
        return await as_django_task(self).aenqueue(*args, **kwargs)

    def get_result(self, result_id: str) -> Any:
        """The TaskResult of a job of this task. Raises TaskResultDoesNotExist or TaskResultMismatch."""
        return as_django_task(self).get_result(result_id)

    async def aget_result(self, result_id: str) -> Any:
        """get_result() for async code."""
        return await as_django_task(self).aget_result(result_id)

    # -- internals

    @cached_property
    def call_signature(self) -> Signature:
        """The parameters of the function, without the context."""
        return signature_of(self.func, takes_context=self.takes_context)

    @cached_property
    def uniqueness(self) -> Uniqueness | None:
        """The checked options of a unique task; None for others."""
        return uniqueness_of(self, self.call_signature)

    @cached_property
    def options_in_record(self) -> str:
        """The options that workers have to know of this copy, as members of a JSON object."""
        return write_options(self)

    @cached_property
    def due(self) -> str:
        """`run_after`, as scripts take it."""
        return moment_argument(self.name, "run_after", self.run_after)

    @cached_property
    def expires_in(self) -> str:
        """`expires`, as scripts take it."""
        return moment_argument(self.name, "expires", self.expires)

    def _in_transaction(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return ExactlyOnce(func, self.name, str(self.exactly_once)) if self.exactly_once else func

    def __repr__(self) -> str:
        return task_repr(self)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


_METHODS = frozenset(name for name, value in vars(Task).items() if inspect.isfunction(value))
# What is made of an option, and cached.
_CACHES = {
    "run_after": "due",
    "headers": "options_in_record",
    "expires": "expires_in",
    **dict.fromkeys(WORKER_OPTIONS, "options_in_record"),
    **dict.fromkeys({"unique", *UNIQUE_OPTIONS}, "uniqueness"),
}
