"""Task: a function with the options of its jobs. Enqueues calls of it."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from asgiref.sync import sync_to_async

from django_rtq.conf.config import get_config
from django_rtq.exceptions import ConfigurationError, InvalidTask
from django_rtq.handle import JobHandle
from django_rtq.jobs import serializer
from django_rtq.jobs.context import JobContext
from django_rtq.middleware.chain import can_wrap, wrap
from django_rtq.schedules.schedule import Schedule, schedules_option
from django_rtq.tasks.calls import ClientOption, Signature, check_call, new_job, signature_of
from django_rtq.tasks.celery_options import CeleryOptions, using_options
from django_rtq.tasks.declaration import (
    aliases_option,
    check_function,
    name_option,
    shown_attributes,
    warn_if_unknown_to_workers,
)
from django_rtq.tasks.enqueuing import (
    Arguments,
    Handles,
    asend,
    checked_calls,
    enqueue,
    enqueue_unique,
    new_unique_job,
    send,
    waits_by_default,
)
from django_rtq.tasks.exactly_once import ExactlyOnce, database_option
from django_rtq.tasks.options.backoff import DEFAULT, Backoff
from django_rtq.tasks.options.types import USING_NAMES, UsingOptions
from django_rtq.tasks.options.uniqueness import (
    DAY_SECONDS,
    UNIQUE_OPTIONS,
    OnConflict,
    Uniqueness,
    UniqueOption,
    Until,
)
from django_rtq.tasks.options.values import (
    NORMALIZERS,
    Moment,
    backoff_option,
    check_errors,
    check_flag,
    moment_argument,
)
from django_rtq.transactions.rules import OnCommit, database_to_await, explicit_database, outbox_database

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
Calls = Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
Errors = tuple[type[BaseException], ...]
WORKER_OPTIONS = ("max_attempts", "time_limit", "result_ttl")  # stored in the record, because workers need them


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
        if get_config().middleware and not self.internal:
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
        return (await self._asend([(args, kwargs)]))[0]

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
        changed = using_options(self.name, options)
        return (self.using(**changed) if changed else self).delay(*(args or ()), **(kwargs or {}))

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
        return self._send(checked_calls(self.name, calls), all_or_none)

    @overload
    async def adelay_many(
        self: Task[P, Coroutine[Any, Any, T]], calls: Calls, *, all_or_none: bool = ...
    ) -> list[JobHandle[T]]: ...

    @overload
    async def adelay_many(self, calls: Calls, *, all_or_none: bool = ...) -> list[JobHandle[R_co]]: ...

    async def adelay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[Any]]:
        """delay_many() for coroutines."""
        return await self._asend(checked_calls(self.name, calls), all_or_none)

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
        return self._as_django_task().enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """enqueue() for async code."""
        return await self._as_django_task().aenqueue(*args, **kwargs)

    def get_result(self, result_id: str) -> Any:
        """The TaskResult of a job of this task. Raises TaskResultDoesNotExist or TaskResultMismatch."""
        return self._as_django_task().get_result(result_id)

    async def aget_result(self, result_id: str) -> Any:
        """get_result() for async code."""
        return await self._as_django_task().aget_result(result_id)

    # -- internals

    @cached_property
    def call_signature(self) -> Signature:
        """The parameters of the function, without the context."""
        return signature_of(self.func, takes_context=self.takes_context)

    @cached_property
    def uniqueness(self) -> Uniqueness | None:
        """The checked options of a unique task; None for others. Raises InvalidTask."""
        if self.unique is not False:
            return Uniqueness(
                owner=self.name,
                unique=self.unique,
                until=self.unique_until,
                seconds=self.unique_seconds,
                on_conflict=self.unique_on_conflict,
                signature=self.call_signature,
            )
        set_on_task = {name for name in UNIQUE_OPTIONS if getattr(self, name) != getattr(type(self), name)}
        given = UNIQUE_OPTIONS & self.changed if self.changed else set_on_task  # a copy has the others from its task
        if given:
            raise InvalidTask(f"{self.name}: {min(given)} has no effect without unique: set that too.")
        return None

    @cached_property
    def options_in_record(self) -> str:
        """The options that workers have to know of this copy, as members of a JSON object."""
        if not self.internal:
            warn_if_unknown_to_workers(self.name, self.func.__module__)  # here, because this is cached
        options = {name: getattr(self, name) for name in WORKER_OPTIONS if name in self.changed}
        if None in options.values():  # None: the default of the settings, not that of the task
            options = {name: getattr(get_config(), name) if v is None else v for name, v in options.items()}
        if self.headers:
            options["headers"] = self.headers
        return serializer.dumps(options)[1:-1]

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

    def _send(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """Enqueue jobs, inside of middleware if there is any. Raises what delay() raises."""
        if uses_middleware(self):
            return send_through_middleware(self, arguments, partial(send, all_or_none=all_or_none))
        return send(self, arguments, all_or_none)

    async def _asend(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """_send() for coroutines."""
        waits = database_to_await(self.on_commit) is not None or waits_by_default(self)
        if waits or outbox_database() is not None:
            # Django keeps the connections of async code, and their transactions, in the thread-sensitive thread.
            return await sync_to_async(self._send, thread_sensitive=True)(arguments, all_or_none)
        if not uses_middleware(self):
            return await asend(self, arguments, all_or_none)
        chain = _async_chain(get_config().middleware)
        if chain is None:
            return await sync_to_async(self._send, thread_sensitive=False)(arguments, all_or_none)
        call = _task_call(self, arguments, partial(asend, all_or_none=all_or_none))
        return _checked(await chain(call), call)

    def _as_django_task(self) -> Any:
        """The task as one of django.tasks, for the first of our backends in TASKS. Raises ConfigurationError."""
        try:
            from django.tasks import task_backends
        except ImportError:
            try:
                from django_tasks import task_backends  # type: ignore[assignment]
            except ImportError as error:
                raise ConfigurationError(
                    "enqueue() needs django.tasks: Django 6, or the package django-tasks. Without it, use delay()."
                ) from error
        for backend in task_backends.all():
            if hasattr(backend, "adopt"):
                return backend.adopt(self)
        raise ConfigurationError(
            'enqueue() needs a backend of this package. Write TASKS = {"default": {"BACKEND": '
            '"django_rtq.backend.RTQBackend"}}, or use delay().'
        )

    def __repr__(self) -> str:
        changes = [f"{name}={reprlib.repr(getattr(self, name))}" for name in sorted(self.changed)]
        return f"<Task {' '.join([self.name, *changes])}>"

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def on_backend(task: Task[P, R_co], alias: str) -> Task[P, R_co]:
    """A copy of the task whose jobs go to the Redis of a backend in TASKS."""
    copy = task.using()
    copy._set(backend=alias)
    return copy


_METHODS = frozenset(name for name, value in vars(Task).items() if inspect.isfunction(value))
# What is made of an option, and cached.
_CACHES = {
    "run_after": "due",
    "headers": "options_in_record",
    "expires": "expires_in",
    **dict.fromkeys(WORKER_OPTIONS, "options_in_record"),
    **dict.fromkeys({"unique", *UNIQUE_OPTIONS}, "uniqueness"),
}


def _let_methods_be_patched(cls: Any) -> None:
    """Let tests replace methods of a task, as mock.patch() and monkeypatch do, although its options are frozen."""
    set_frozen, delete_frozen = cls.__setattr__, cls.__delattr__

    def set_attribute(instance: Any, name: str, value: Any) -> None:
        (object.__setattr__ if is_method(name) else set_frozen)(instance, name, value)

    def delete_attribute(instance: Any, name: str) -> None:
        (object.__delattr__ if is_method(name) else delete_frozen)(instance, name)

    def is_method(name: str) -> bool:
        return inspect.isfunction(getattr(cls, name, None))

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute


_let_methods_be_patched(Task)


# -- calls on their way through RTQ["MIDDLEWARE"]


@dataclass(slots=True, kw_only=True)
class TaskCall:
    """What middleware gets for one delay() or delay_many(). It may change all attributes before it passes it on."""

    task: Task[Any, Any]  # with the options of using()
    arguments: list[Arguments]  # (args, kwargs) for each job
    headers: dict[str, Any]  # of all these jobs
    schedule: Schedule | None = None  # that fires; None: somebody calls delay()
    _send: Callable[[Task[Any, Any], Iterable[Arguments]], Any] = field(default=send, repr=False)

    def send(self) -> Any:
        """Enqueue the jobs. Returns their handles; for a coroutine, what it has to await."""
        task = self.task
        if self.headers != task.headers:
            task = task.using(headers=None).using(headers=self.headers)
        return self._send(task, self.arguments)


def uses_middleware(task: Task[Any, Any]) -> bool:
    """Whether calls of this task have to go through middleware."""
    return bool(get_config().middleware) and not task.internal


def send_through_middleware(
    task: Task[Any, Any],
    arguments: Iterable[Arguments],
    send: Callable[[Task[Any, Any], Iterable[Arguments]], Handles] = send,
    schedule: Schedule | None = None,
) -> Handles:
    """Enqueue jobs inside the middleware. Raises what delay() and the middleware raise, and ConfigurationError."""
    call = _task_call(task, arguments, send, schedule)
    return _checked(_chain(get_config().middleware)(call), call)


def _task_call(
    task: Task[Any, Any], arguments: Iterable[Arguments], send: Callable[..., Any], schedule: Schedule | None = None
) -> TaskCall:
    return TaskCall(task=task, arguments=list(arguments), headers=dict(task.headers), schedule=schedule, _send=send)


@lru_cache(maxsize=8)
def _async_chain(paths: tuple[str, ...]) -> Callable[[TaskCall], Any] | None:
    """None: some of the middleware is for threads only."""
    return wrap(paths, "enqueue", _asend) if can_wrap(paths, "enqueue", is_async=True) else None


async def _asend(call: TaskCall) -> Handles:
    handles: Handles = await call.send()
    return handles


@lru_cache(maxsize=8)
def _chain(paths: tuple[str, ...]) -> Callable[[TaskCall], Any]:
    return wrap(paths, "enqueue", TaskCall.send)


def _checked(handles: Any, call: TaskCall) -> Handles:
    if not isinstance(handles, list) or len(handles) != len(call.arguments):
        raise TypeError(
            f'RTQ["MIDDLEWARE"]: the middleware around delay() of {call.task.name} returned {handles!r}, but has to '
            "return what enqueue(call) returned."
        )
    return handles
