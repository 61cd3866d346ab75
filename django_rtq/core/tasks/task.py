"""Task: a function with the options of its jobs. Makes jobs of calls, and sends them, at once or after a commit."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from asgiref.sync import sync_to_async

from django_rtq.core import signals
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.messages import EnqueueCall, NewJob, Unreplicated, is_refusal, queue_full
from django_rtq.core.broker.redis.commands import arun_steps, run_steps
from django_rtq.core.conf.config import DATABASE, get_config
from django_rtq.core.conf.option import FLAG, Unfit, accepts, number, one_of, option, options_of, seconds
from django_rtq.core.extension import no_attribute, parts, required
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import new_job_id, write_body
from django_rtq.core.tasks.calls import ClientOption, Signature, UniqueOption, client_name, signature_of
from django_rtq.core.tasks.declaration import (
    aliases_option,
    check_function,
    name_option,
    schedules_option,
    shown_attributes,
    warn_if_unknown_to_workers,
)
from django_rtq.core.tasks.enqueuing import Arguments, EnqueueMethods, Handles, is_in_transaction, until_stored
from django_rtq.core.tasks.options.backoff import DEFAULT, Backoff, as_backoff, as_json
from django_rtq.core.tasks.options.kinds import CLIENT, ERRORS, HEADERS, QUEUE, Moment, headers_text, moment_argument
from django_rtq.core.transactions import (
    OnCommit,
    awaited_transaction,
    away,
    database_to_await,
    defer,
    has_block,
    integrations_wait,
    named_database,
    open_database,
    outbox,
    outbox_database,
)
from django_rtq.exceptions import (
    BrokerFull,
    BrokerUnavailable,
    ConfigurationError,
    DuplicateJob,
    InvalidTask,
    NotReplicated,
    PayloadError,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from django_rtq.core.schedules import Schedule
    from django_rtq.core.tasks.options.types import CeleryOptions, OnConflict, Until, UsingOptions

    R_co = TypeVar("R_co", covariant=True)
    T_co = TypeVar("T_co", covariant=True, default=R_co)  # of jobs: what a coroutine function returns in the end
else:
    from typing import TypeVar

    R_co, T_co = TypeVar("R_co", covariant=True), TypeVar("T_co", covariant=True)
P = ParamSpec("P")
Errors = tuple[type[BaseException], ...]
# What takes an option: .using() takes those of CALL and USING, @task all but those of USING, and task.with_options()
# those of CALL and SHARED.
CALL, USING, SHARED, ONE_TASK = "call", "using", "shared", "one task"
STORED = frozenset(("ok", "exists"))  # what the broker answers to most jobs


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Task(EnqueueMethods[P, T_co], Generic[P, R_co, T_co]):
    """A function with the options of its jobs. An option that is None has the default of the settings.

    Each option is declared here; the types that @task and using() take are in options/types.py.
    """

    func: Callable[P, R_co]
    queue_name: str = option("", QUEUE, on=CALL, says="queue of the jobs")
    client: ClientOption = option(
        "",
        CLIENT,
        on=CALL,
        says="client (tenant) of the job: a string, or a function that gets the arguments of the call by name",
    )
    priority: int = option(
        0, number(least=-100, most=100, whole=True), on=CALL, says="-100 to 100; higher priorities run first"
    )
    max_attempts: int | None = option(
        None,
        number(least=1, whole=True, or_none=True),
        on=CALL,
        in_record=True,
        says="failed runs (exception or timeout) after which a job is dead",
    )
    max_crashes: int | None = option(
        None,
        number(whole=True, or_none=True),
        on=CALL,
        says="runs that may end with their process before a job is dead",
    )
    backoff: Backoff = option(
        DEFAULT,
        on=CALL,
        in_record=True,
        says="seconds between attempts: a number, a list, or a function of the number of failures",
    )
    retry_on: Errors = option((Exception,), ERRORS, on=SHARED, says="exception classes that are retried (default: all)")
    give_up_on: Errors = option((), ERRORS, on=SHARED, says="exception classes after which a job is dead at once")
    time_limit: float | None = option(None, seconds(), on=CALL, in_record=True, says="seconds that a run may take")
    expires: Moment | None = option(
        None,
        on=CALL,
        makes="expires_in",
        says="a job that has not started by then never runs: seconds, timedelta, or aware datetime",
    )
    at_front: bool = option(False, FLAG, on=CALL, says="put jobs before the other jobs of their client")
    takes_context: bool = option(False, FLAG, on=ONE_TASK, says="pass a JobContext as the first argument, `context`")
    exactly_once: bool | str = option(  # an alias of DATABASES; "": no
        "",
        on=SHARED,
        says="True, or an alias of DATABASES: run in a transaction that also commits the job's id, so that a second "
        "run changes nothing",
    )
    result_ttl: float | None = option(
        None, seconds(or_zero=True), on=CALL, in_record=True, says="seconds that results are kept; 0: not at all"
    )
    keep_args: bool | None = option(
        None,
        accepts(lambda value: value is None or isinstance(value, bool), FLAG.says),
        on=SHARED,
        says='keep the arguments with the result, for operators (default: RTQ["KEEP_ARGS"])',
    )
    schedule: Sequence[Schedule] = option((), on=SHARED, says="cron(…) or every(…), or a list of them: periodic jobs")
    unique: UniqueOption = option(
        False,
        on=CALL,
        makes="unique_digest",
        says="no second job with the same arguments at a time: True, a list of the names of the arguments to compare, "
        "or a function that gets the arguments by name and returns what to compare",
    )
    unique_until: Until = option(
        "done",
        one_of("start", "done"),
        on=CALL,
        makes="unique_digest",
        says='"done", or "start": a second job is accepted while the first one runs',
    )
    unique_seconds: float = option(
        86_400.0,
        seconds(or_none=False),
        on=CALL,
        makes="unique_digest",
        says="the uniqueness ends after this time, counted from when the job is ready (default: a day)",
    )
    unique_on_conflict: OnConflict = option(
        "return",
        one_of("return", "raise", "replace", "rerun"),
        on=CALL,
        makes="unique_digest",
        says='for a second call: "return" the first job, "raise" DuplicateJob, "replace" the arguments and the time of '
        'the first while it waits, or "rerun": run once more after the first, if it runs',
    )
    on_commit: OnCommit = option(
        None,
        DATABASE,
        on=CALL,
        says="send jobs at once (False), or after the commit of the database `default` (True) or of another one (its "
        "alias)",
    )
    batch: int | None = option(
        None,
        number(least=2, most=100, whole=True, or_none=True),
        on=ONE_TASK,
        says="the function gets a list of so many calls at the most, each of one job",
    )
    name: str = option(
        "", on=ONE_TASK, says="the name by which workers find the task (default: module and name of the function)"
    )
    aliases: Sequence[str] = option(
        (), on=ONE_TASK, says="other names: of jobs that were enqueued before the task was renamed"
    )
    run_after: Moment | None = option(None, on=USING, makes="due")
    headers: Mapping[str, Any] = option({}, HEADERS, on=USING, makes="options_in_record")
    # Not for users:
    keeps_call: bool = False  # arguments and failures are kept with results
    internal: bool = False  # operators cannot enqueue its jobs
    backend: str = ""  # in TASKS, whose Redis gets the jobs; "": RTQ["REDIS"]
    changed: frozenset[str] = frozenset()  # options that using() set

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> Any:  # T_co may be left out
            return super().__class_getitem__((*parameters, parameters[-1])[:3])

    def __post_init__(self) -> None:
        check_function(self.func)
        values = self.__dict__  # frozen, but for this
        values["name"] = name_option(self.func, self.name)
        values.update(
            aliases=aliases_option(self.name, self.func, self.aliases),
            backoff=self._read_backoff(self.backoff),
            schedule=schedules_option(self.name, self.schedule),
        )
        if self.exactly_once != "":
            values["exactly_once"] = required("exactly_once").database_option(self.name, self.exactly_once, self.func)
        if self.batch is not None:
            _check_batch(self)
        self._check_options(OPTIONS)
        values.update(shown_attributes(self.func, takes_context=self.takes_context))
        for entry in self.schedule:
            check_call(self, entry.args, dict(entry.kwargs))

    def _read_backoff(self, value: Any, *, of_call: bool = False) -> Backoff:
        try:
            backoff = as_backoff(value)
            if of_call:
                as_json(backoff)
            return backoff
        except InvalidTask as error:
            raise InvalidTask(f"{self.name}: {error}") from error

    def _check_options(self, names: Iterable[str]) -> None:
        values = self.__dict__
        for name in names:
            values[name] = OPTIONS[name].kind.checked(f"{self.name}: {name}", values[name], InvalidTask)
        # Created here, so that invalid options raise at import time.
        _ = self.call_signature, self.due, self.expires_in, self.unique_digest
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

    # -- calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function directly, in this process."""
        if self.takes_context:
            from django_rtq.core.jobs.context import JobContext  # producers do not need it

            return self.func(JobContext(), *args, **kwargs)  # type: ignore[arg-type]
        return self.func(*args, **kwargs)

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
        changed = required("other_queues").checked_options(self.name, options)
        return (self.using(**changed) if changed else self).delay(*(args or ()), **(kwargs or {}))

    def using(self, **options: Unpack[UsingOptions]) -> Task[P, R_co, T_co]:
        """A copy of the task with other options for some calls: those of @task, `run_after` and `headers`.

        `run_after`: seconds, a timedelta or an aware datetime. `headers`: a dictionary of at most 4 kB of JSON, added
        to those of the task; None removes them. `backoff`: no function of the project, as it is stored with the job.
        Raises InvalidTask. `retry_on` and `give_up_on` cannot be changed: workers read them from the task.
        """
        if not USING_NAMES.issuperset(options):
            check_names(f"{self.name}: using()", options, USING_NAMES)
        if "backoff" in options:
            options["backoff"] = self._read_backoff(options["backoff"], of_call=True)
        if options.get("headers") and isinstance(options["headers"], Mapping):
            options["headers"] = {**self.headers, **options["headers"]}
        copy = self._copy(options)
        copy._check_options(options)
        return copy

    def _with_headers(self, headers: Mapping[str, Any]) -> Task[P, R_co, T_co]:
        """A copy with these headers instead of those that it has, which middleware makes. Raises InvalidTask."""
        if self.headers:
            return self._copy({"headers": HEADERS.checked(f"{self.name}: headers", headers, InvalidTask)})
        try:
            text = f'"headers":{headers_text(headers)}'
        except Unfit as error:
            raise InvalidTask(f"{self.name}: headers {error}") from None
        copy = self._copy({"headers": dict(headers)})
        # What this task has cached is completed: to make all of it again takes as long as the rest.
        options = self.options_in_record
        copy.__dict__["options_in_record"] = f"{options},{text}" if options else text
        return copy

    def _copy(self, options: Mapping[str, Any]) -> Task[P, R_co, T_co]:
        copy = object.__new__(type(self))
        values = copy.__dict__
        values.update(self.__dict__)  # also what is cached, unless it depends on these options
        for name in _METHODS.intersection(values):
            del values[name]  # replaced by a test
        for name in options:
            if name in _CACHES:
                values.pop(_CACHES[name], None)
        values.update(options, changed=self.changed.union(options))
        return copy

    # -- through django.tasks

    if not TYPE_CHECKING:  # EnqueueMethods has their types

        def enqueue(self, *args, **kwargs) -> Any:
            """Enqueue a job through our backend in TASKS. Returns a TaskResult of django.tasks.

            Raises ConfigurationError if TASKS has no such backend, TypeError for arguments that are not plain JSON, and
            what delay() raises.
            """
            return self._as_django_task().enqueue(*args, **kwargs)

        async def aenqueue(self, *args, **kwargs) -> Any:
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
        return signature_of(self.func, takes_context=self.takes_context, takes_calls=self.batch is not None)

    @cached_property
    def unique_digest(self) -> Callable[[Sequence[Any], dict[str, Any]], str] | None:
        """What makes the digest of a call of a unique task; None for others. Raises InvalidTask."""
        if self.unique is not False:
            if self.unique_until == "start" and self.unique_on_conflict == "rerun":
                raise InvalidTask(
                    f'{self.name}: unique_on_conflict="rerun" needs unique_until="done". With "start", a call makes a '
                    "new job while another one runs."
                )
            self.call_signature.check_unique(self.name, self.unique)
            return partial(self.call_signature.digest, self.name, self.unique)
        set_on_task = {name for name in _UNIQUE_OPTIONS if getattr(self, name) != getattr(type(self), name)}
        given = _UNIQUE_OPTIONS & self.changed if self.changed else set_on_task  # a copy has the others from its task
        if given:
            raise InvalidTask(f"{self.name}: {min(given)} has no effect without unique: set that too.")
        return None

    @cached_property
    def options_in_record(self) -> str:
        """The options that workers have to know of this copy, as members of a JSON object."""
        if not self.internal:
            warn_if_unknown_to_workers(self.name, self.func.__module__)  # here, because this is cached
        options = {name: getattr(self, name) for name in _WORKER_OPTIONS if name in self.changed}
        if None in options.values():  # None: the default of the settings, not that of the task
            options = {name: getattr(get_config(), name) if v is None else v for name, v in options.items()}
        if "backoff" in options:
            options["backoff"] = as_json(self.backoff)
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

    def _on_commit(self) -> Task[P, R_co, T_co]:
        return self.using(on_commit=named_database(self.on_commit) or True)

    def _in_transaction(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not self.exactly_once:
            return func
        return partial(required("exactly_once").run_once, func, self.name, self.exactly_once)

    def _send(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """Enqueue jobs, inside of middleware if there is any. Raises what delay() raises."""
        if get_config().middleware and not self.internal:
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
        chain = _chain(get_config().middleware, is_async=True)
        if chain is None:
            return await sync_to_async(self._send, thread_sensitive=False)(arguments, all_or_none)
        send = partial(asend, all_or_none=all_or_none)
        call = TaskCall(task=self, arguments=list(arguments), headers=dict(self.headers), _send=send)
        return _checked(await chain(call), call)

    def _as_django_task(self) -> Any:
        """The task as one of django.tasks, for the first of our backends in TASKS. Raises ConfigurationError."""
        try:
            backends = required("task_backends").all()
        except ImportError as error:
            raise ConfigurationError(
                "enqueue() needs django.tasks: Django 6, or the package django-tasks. Without it, use delay()."
            ) from error
        for backend in backends:
            if hasattr(backend, "adopt"):
                return backend.adopt(self)
        raise ConfigurationError(
            'enqueue() needs a backend of this package. Write TASKS = {"default": {"BACKEND": '
            '"django_rtq.backend.RTQBackend"}}, or use delay().'
        )

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, self.name, name)

    def __repr__(self) -> str:
        changes = [f"{name}={reprlib.repr(getattr(self, name))}" for name in sorted(self.changed)]
        return f"<Task {' '.join([self.name, *changes])}>"


def check_names(owner: str, options: Mapping[str, Any], allowed: Set[str]) -> None:
    """Raises InvalidTask for an option that is not allowed there, with what to write instead."""
    if unknown := options.keys() - allowed:
        name = min(unknown & (USING_NAMES | TASK_NAMES), default=min(unknown))
        cures = (each.option_cure(name, allowed, USING_NAMES, TASK_NAMES) for each in parts("other_queues"))
        cure = next(cures, f"It takes: {', '.join(sorted(allowed))}.")
        raise InvalidTask(f"{owner} does not take {name!r}. {cure}")


def on_backend(task: Task[P, R_co, T_co], alias: str) -> Task[P, R_co, T_co]:
    """A copy of the task whose jobs go to the Redis of a backend in TASKS."""
    copy = task.using()
    copy.__dict__["backend"] = alias
    return copy


_METHODS = frozenset(name for name, _ in inspect.getmembers(Task, inspect.isfunction))
OPTIONS = options_of(Task)
USING_NAMES = frozenset(name for name, declared in OPTIONS.items() if declared.on in (CALL, USING))
SHARED_NAMES = frozenset(name for name, declared in OPTIONS.items() if declared.on in (CALL, SHARED))
TASK_NAMES = frozenset(name for name, declared in OPTIONS.items() if declared.on != USING)
_WORKER_OPTIONS = tuple(name for name, declared in OPTIONS.items() if declared.in_record)
_UNIQUE_OPTIONS = frozenset(name for name in OPTIONS if name.startswith("unique_"))
# What is made of an option, and cached.
_CACHES = {
    name: "options_in_record" if declared.in_record else declared.makes
    for name, declared in OPTIONS.items()
    if declared.in_record or declared.makes
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


# -- sending


def send(task: Task[Any, Any], calls: Iterable[Arguments], all_or_none: bool = False) -> Handles:
    """Make the jobs of some calls and enqueue them. Raises what delay() raises."""
    queue, backend = task.queue, task.backend
    jobs = _new_jobs(task, queue, calls, all_or_none)
    of_integration = open_database(has_block) if waits_by_default(task) else None
    if jobs and (alias := of_integration or awaited_transaction(task.name, task.on_commit)):
        return _enqueue_on_commit(alias, task, jobs, all_or_none)
    enqueue = get_broker(backend).enqueue
    try:
        answers = enqueue(queue, jobs, all_or_none=all_or_none) if jobs else []
        if not STORED.issuperset(answers) and not is_in_transaction():
            again = partial(enqueue, queue, all_or_none=all_or_none)
            answers = run_steps(until_stored(queue, jobs, answers), again)
    except (BrokerUnavailable, BrokerFull) as error:
        box = outbox()
        if not box or not box.store_instead(task.name, EnqueueCall(queue, jobs, backend=backend), error):
            raise
        return [JobHandle(job.id, queue, backend=backend) for job in jobs]
    if away and (box := outbox()):
        box.note_answers([(EnqueueCall(queue, jobs, backend=backend), answers)])
    if signals.job_enqueued.receivers:
        signals.send_enqueued(type(task), queue, task.name, _added(jobs, answers))
    return _handles(task, queue, jobs, answers)


async def asend(task: Task[Any, Any], calls: Iterable[Arguments], all_or_none: bool = False) -> Handles:
    """send() for coroutines, without waiting for a commit."""
    queue = task.queue
    jobs, enqueue = _new_jobs(task, queue, calls, all_or_none), get_broker(task.backend).aenqueue
    answers = await enqueue(queue, jobs, all_or_none=all_or_none) if jobs else []
    if not STORED.issuperset(answers):
        again = partial(enqueue, queue, all_or_none=all_or_none)
        answers = await arun_steps(until_stored(queue, jobs, answers), again)
    if signals.job_enqueued.receivers:
        ids = _added(jobs, answers)
        if ids:
            await signals.job_enqueued.asend_robust(type(task), job_ids=ids, queue=queue, task=task.name)
    return _handles(task, queue, jobs, answers)


def _new_jobs(task: Task[Any, Any], queue: str, calls: Iterable[Arguments], all_or_none: bool) -> list[NewJob]:
    if get_config().shards is None:
        return [new_job(task, args, kwargs) for args, kwargs in calls]
    new_id = required("placement").new_ids(task.backend, queue)
    jobs = [new_job(task, args, kwargs, new_id) for args, kwargs in calls]
    if all_or_none:
        required("placement").check_together(job.id for job in jobs)
    return jobs


def _handles(task: Task[Any, Any], queue: str, jobs: Sequence[NewJob], answers: Sequence[str]) -> Handles:
    """A handle for each job: that of the first one for a duplicate. Raises QueueFull, DuplicateJob, NotReplicated."""
    backend = task.backend
    if isinstance(answers, Unreplicated):
        raise NotReplicated(answers.problem, _handles(task, queue, jobs, list(answers)))
    if STORED.issuperset(answers):
        return [JobHandle(job.id, queue, backend=backend) for job in jobs]
    firsts = ["" if is_refusal(answer) else answer.partition(" ")[2] for answer in answers]
    handles: Handles = [
        JobHandle(first or job.id, queue, duplicate=bool(first), backend=backend)
        for job, first in zip(jobs, firsts, strict=True)
    ]
    if full := queue_full(queue, jobs, answers, handles):
        raise full
    if task.unique_on_conflict == "raise" and any(firsts):
        raise DuplicateJob(next(filter(None, firsts)), task.name)
    return handles


def waits_by_default(task: Task[Any, Any]) -> bool:
    """Whether its jobs come through TASKS and wait for the commit, although neither an option nor a setting says so.

    Packages enqueue them in transactions: they are made for backends whose jobs are rows of the database.
    """
    return task.backend != "" and task.on_commit is None and integrations_wait()


def _enqueue_on_commit(alias: str, task: Task[Any, Any], jobs: Sequence[NewJob], all_or_none: bool) -> Handles:
    """Enqueue the jobs when the transaction commits. The handles of duplicates are corrected then."""
    queue, backend = task.queue, task.backend
    handles: Handles = [JobHandle(job.id, queue, backend=backend) for job in jobs]

    def finish(answers: Sequence[str] | None, *, is_stored: bool) -> None:
        if answers is not None:  # else the jobs are in the outbox still, whose relay announces them
            for handle, answer in zip(handles, answers, strict=True):
                if not is_refusal(answer):
                    if first := answer.partition(" ")[2]:
                        handle.id, handle.duplicate = first, True
                elif not is_stored:
                    handle.when_sent = None  # it is not sent again
            if signals.job_enqueued.receivers:
                signals.send_enqueued(type(task), queue, task.name, _added(jobs, answers))
        for handle in handles:
            handle.tell_sent()

    for handle in handles:
        handle.when_sent = []
    defer(alias, task.name, EnqueueCall(queue, jobs, all_or_none, backend), finish)
    return handles


def _added(jobs: Sequence[NewJob], answers: Sequence[str]) -> list[str]:
    """The ids of the jobs that are neither duplicates nor refused."""
    pairs = zip(jobs, answers, strict=True)
    return [job.id for job, answer in pairs if not (is_refusal(answer) or answer.startswith("duplicate"))]


def new_job(
    task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any], new_id: Callable[..., str] | None = None
) -> NewJob:
    """A job for Broker.enqueue, with checked arguments. Raises what delay() raises for invalid ones.

    `new_id` makes the id of a job of this client, and of this digest if it is unique; None: new_job_id().
    """
    config, name, signature, client = get_config(), task.name, task.call_signature, task.client
    signature.check(args, kwargs)
    call = serializer.dumps_call(args, kwargs, names=signature.names, task=name)
    body = write_body(name, call, task.options_in_record)
    serializer.check_body(name, body, config.max_payload_bytes)
    if not isinstance(client, str):
        client = client_name(f"{name}: client", signature.apply(client, args, kwargs))
    unique = task.unique_digest
    digest = "" if unique is None else unique(args, kwargs)
    job = NewJob(
        new_job_id() if new_id is None else new_id(client, digest),
        task.priority,
        config.max_crashes if task.max_crashes is None else task.max_crashes,
        client,
        task.due,
        task.expires_in,
        "1" if task.at_front else "",
        body,
        digest,
    )
    if unique is None:
        return job
    limit_ms = max(1, round(task.unique_seconds * 1000))
    return job._replace(until=task.unique_until, limit_ms=limit_ms, on_conflict=task.unique_on_conflict)


def check_call(task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises InvalidTask if periodic jobs cannot have these arguments."""
    try:
        task.call_signature.check(args, kwargs)
        serializer.dumps_call(args, kwargs, names=task.call_signature.names, task=task.name)
    except (TypeError, PayloadError) as error:
        raise InvalidTask(f"{task.name}: the arguments of its schedule are invalid: {error}") from error


# -- calls on their way through RTQ["MIDDLEWARE"]


@dataclass(slots=True, kw_only=True)
class CalledWorkflow:
    """A workflow that gets jobs, for middleware."""

    id: str
    shared: dict[str, Any] = field(default_factory=dict)  # by all its steps: what middleware keeps for the others


@dataclass(slots=True, kw_only=True)
class TaskCall:
    """What middleware gets for one delay() or delay_many(). It may change all attributes before it passes it on."""

    task: Task[Any, Any]  # with the options of using()
    arguments: list[Arguments]  # (args, kwargs) for each job
    headers: dict[str, Any]  # of all these jobs
    schedule: Schedule | None = None  # that fires; None: somebody calls delay()
    workflow: CalledWorkflow | None = None  # that gets these jobs
    _send: Callable[[Task[Any, Any], Iterable[Arguments]], Any] = field(default=send, repr=False)

    def send(self) -> Any:
        """Enqueue the jobs. Returns their handles; for a coroutine, what it has to await."""
        task = self.task
        if self.headers != task.headers:
            task = task._with_headers(self.headers)
        return self._send(task, self.arguments)


def _check_batch(task: Task[Any, Any]) -> None:
    """Raises InvalidTask for options and functions that make no sense together."""
    if inspect.iscoroutinefunction(task.func):
        raise InvalidTask(
            f"{task.name}: a task with batch runs in a thread, so it cannot be a coroutine function. Write `def` "
            "instead of `async def`, and await in it with async_to_sync()."
        )
    if task.exactly_once:
        raise InvalidTask(
            f"{task.name}: exactly_once commits the id of one job together with what it writes, and a batch has many "
            "jobs. Leave out batch or exactly_once."
        )
    if task.takes_context:
        raise InvalidTask(
            f"{task.name}: takes_context is of one job, and a batch has many. Each call has its id, attempt, client "
            "and headers instead."
        )
    try:
        inspect.signature(task.func).bind([])
    except TypeError:
        raise InvalidTask(
            f"{task.name}: a task with batch gets one argument, the list of its calls: def "
            f"{task.func.__name__}(calls: Sequence[Call])."
        ) from None


def uses_middleware(task: Task[Any, Any]) -> bool:
    """Whether calls of this task have to go through middleware."""
    return bool(get_config().middleware) and not task.internal


def send_through_middleware(
    task: Task[Any, Any],
    arguments: Iterable[Arguments],
    send: Callable[[Task[Any, Any], Iterable[Arguments]], Handles] = send,
    schedule: Schedule | None = None,
    workflow: CalledWorkflow | None = None,
) -> Handles:
    """Enqueue jobs, inside the middleware if there is some. Raises what both raise, and ConfigurationError."""
    if not uses_middleware(task):
        return send(task, arguments)
    call = TaskCall(task=task, arguments=list(arguments), headers=dict(task.headers), schedule=schedule, _send=send)
    call.workflow = workflow
    return _checked(_chain(get_config().middleware)(call), call)


@lru_cache(maxsize=16)
def _chain(paths: tuple[str, ...], *, is_async: bool = False) -> Any:
    """Middleware around what sends a TaskCall. None: some of it is for threads only."""
    from django_rtq.core.middleware import can_wrap, wrap  # projects without middleware do not need it

    if is_async and not can_wrap(paths, "enqueue", is_async=True):
        return None
    return wrap(paths, "enqueue", _asend if is_async else TaskCall.send)


async def _asend(call: TaskCall) -> Handles:
    handles: Handles = await call.send()
    return handles


def _checked(handles: Any, call: TaskCall) -> Handles:
    if not isinstance(handles, list) or len(handles) != len(call.arguments):
        raise TypeError(
            f'RTQ["MIDDLEWARE"]: the middleware around delay() of {call.task.name} returned {handles!r}, but has to '
            "return what enqueue(call) returned."
        )
    return handles
