"""Looking at jobs and acting on them in code: ``rtq.jobs.filter(queue="mail", state="dead").requeue()``.

`rtq` is the Redis of RTQ["REDIS"], or all shards; `rtq.at("reports")` is that of a backend in TASKS. Everything raises
BrokerError. Coroutines use the methods whose names begin with `a`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from typing import Any, Generic, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from django_rtq.console.incidents import Incident, look
from django_rtq.console.merging import joined
from django_rtq.console.reading.actions import PLAINLY, Actions, How, Verb, changed_body
from django_rtq.console.reading.clients import ClientInQueue, QueueState
from django_rtq.console.reading.details import QueueDetails, WorkerDetails
from django_rtq.console.reading.jobs.walk import Shown
from django_rtq.console.reading.members import recent_in, with_workflows
from django_rtq.console.reading.readers import Readers, readers_of
from django_rtq.console.reading.selection import STATES, Selection
from django_rtq.console.reading.sweep import Sweep, run_steps
from django_rtq.console.schedule_status import ScheduleStatus, read_schedules
from django_rtq.console.shards import AllShards
from django_rtq.core import signals
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.control import WorkerCommand, send_command, supervisor_of
from django_rtq.core.broker.one_job import JobAccess, access_to_jobs
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import AT_ONCE, MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.broker.task_backends import named_place, place_of_job, shard_numbers
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.conf.queue_options import CLIENT_LIMITS, QUEUE_LIMITS
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import CancelAnswer, JobState
from django_rtq.core.tasks.calls import client_name
from django_rtq.core.tasks.registry import names_of
from django_rtq.exceptions import LeaseNotExpired, TooManyPausedTasks, WorkerNotFound, WrongState
from django_rtq.limits.limit_kinds import limits_text
from django_rtq.scale.placement import share_of_queue
from django_rtq.workflows.handle import WorkflowProgress

T = TypeVar("T")
P = ParamSpec("P")

_JOBS_AT_ONCE = 100  # that a coroutine gets from a thread
MAX_CALLS = 100  # of resume, for one queue; the scheduler goes on


def _awaited(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The method for coroutines."""

    async def awaited(*args: P.args, **options: P.kwargs) -> T:
        return await sync_to_async(method, thread_sensitive=False)(*args, **options)

    awaited.__name__, awaited.__doc__ = f"a{method.__name__}", f"{method.__name__}() for coroutines."
    return awaited


class Place:
    """A Redis, and what is in it."""

    def __init__(self, name: str = "", *, readers: Readers | None = None) -> None:
        self._name = name  # of a backend in TASKS, or "#1" for a shard; "": RTQ["REDIS"], or all shards
        self._readers = readers  # of all shards, for one request

    def __repr__(self) -> str:
        return f"rtq.at({self._name!r})" if self._name else "rtq"

    def at(self, name: str) -> Place:
        """The Redis of a backend in TASKS; "#1": of shard 1."""
        return Place(name)

    @property
    def readers(self) -> Readers:
        """For the package: what reads it and changes it. Raises ConfigurationError."""
        if self._readers is not None:
            return self._readers
        name = named_place(self._name)
        return AllShards(is_strict=True) if not name and shard_numbers() else readers_of(name)

    @property
    def jobs(self) -> Jobs:
        """All jobs."""
        return Jobs(self, Selection())

    def job(self, job_id: str) -> OneJob:
        """One job, by its id."""
        return OneJob(self, job_id)

    @property
    def queues(self) -> Queues:
        """The queues that were used: ``rtq.queues["mail"]``."""
        return Queues(self, Queue)

    @property
    def clients(self) -> _ByName[Client]:
        """``rtq.clients["acme"]``."""
        return _ByName(self, Client)

    @property
    def tasks(self) -> _ByName[TaskInQueues]:
        """``rtq.tasks["shop.tasks.charge"]``."""
        return _ByName(self, TaskInQueues)

    @property
    def workers(self) -> Workers:
        """The worker processes, and those that are lost and still hold jobs: ``rtq.workers["web1:7:…"]``."""
        return Workers(self, Worker)

    def workflows(self, limit: int = 100, *, state: str = "") -> list[WorkflowProgress]:
        """The workflows in which something happened last; of those in a state, if one is named."""
        return recent_in(self.readers, limit, state=state)

    def schedules(self) -> list[ScheduleStatus]:
        """The schedules that can run, by name."""
        found = joined(self.readers.every(lambda one: read_schedules(one.place)))
        return sorted((each for each in found if each.entry), key=lambda each: each.name)

    def incidents(self) -> list[Incident]:
        """What is wrong at this moment, the worst first."""
        return list(look(self.readers).incidents)

    aworkflows = _awaited(workflows)
    aschedules = _awaited(schedules)
    aincidents = _awaited(incidents)


class Jobs:
    """Jobs that match. Nothing is read before they are counted, listed, or something is done with them."""

    def __init__(self, place: Place, selection: Selection) -> None:
        self._place, self._selection = place, selection

    def __repr__(self) -> str:
        return f"{self._place}.jobs.filter({str(self._selection)!r})"

    def filter(self, query: str = "", **fields: str | datetime | Iterable[str]) -> Jobs:
        """Those of them that match a query as in the search of the admin, and have these fields.

        ``filter("no stock", queue="mail", state=["dead", "retrying"], since="1h")``. The fields are those of a query:
        id (or its beginning), task, client ("": none), workflow (its name or id), error, error_class, queue, state,
        since and before. Several states, or queues: any of them. Raises ValueError; if no workflow has a name, when
        it is read.
        """
        words = {"class" if name == "error_class" else name: value for name, value in fields.items()}
        return Jobs(self._place, self._selection.narrowed(query, **words))

    def __iter__(self) -> Iterator[JobDetails]:
        """In the order of the states that are asked for, or else the running first, then dead ones from the newest."""
        return (job for job, _ in find_jobs(self._place.readers, self._found))

    async def __aiter__(self) -> AsyncIterator[JobDetails]:
        jobs, following = iter(self), _awaited(lambda jobs: list(islice(jobs, _JOBS_AT_ONCE)))
        while some := await following(jobs):
            for job in some:
                yield job

    def __getitem__(self, some: slice) -> list[JobDetails]:
        """The first ones: ``jobs[:100]``."""
        if not isinstance(some, slice):
            raise TypeError("Jobs have no numbers. Write jobs[:1] for the first, and rtq.job(id) for one by its id.")
        return list(islice(self, some.start, some.stop, some.step))

    def count(self) -> int:
        """How many there are."""
        selection = replace(self._found, states=self._selection.states or STATES)
        return self._place.readers.sweeps.count(Sweep(verb="count", selection=selection), most=sys.maxsize).count

    def requeue(self, *, to: str = "") -> int:
        """Queue the dead letters again, with all their attempts; in another queue, if it is named. Returns how many.

        Limits of waiting jobs refuse none. Raises ValueError for a queue that settings do not name.
        """
        return self._act("requeue", target=to)

    def cancel(self, *, terminate: bool = False) -> int:
        """Cancel those that wait; if they are selected by state="running", ask running ones to stop. Returns how many.

        `terminate`: the processes of running ones are killed if they do not stop.
        """
        return self._act("cancel", terminates=terminate)

    def discard(self) -> int:
        """Delete the dead letters. Returns how many."""
        return self._act("discard")

    def run_now(self) -> int:
        """Queue the scheduled and retrying ones now. Returns how many."""
        return self._act("run_now")

    def _act(self, verb: Verb, **options: Any) -> int:
        return _sweep(self._place, Sweep(verb=verb, selection=self._found, **options))

    @property
    def _found(self) -> Selection:
        return with_workflows(self._place.readers, self._selection)

    acount = _awaited(count)
    arequeue = _awaited(requeue)
    acancel = _awaited(cancel)
    adiscard = _awaited(discard)
    arun_now = _awaited(run_now)


def find_jobs(
    readers: Readers, selection: Selection, *, cursor: str = "", shown: Shown = lambda job: job
) -> Iterator[tuple[JobDetails, Callable[[], str]]]:
    """The jobs that match, one state after the other: see JobWalk.each()."""
    queues = selection.queues or readers.queues.names()
    lists = [(queue, state) for state in selection.states or STATES for queue in queues]
    return readers.search(lists, selection, shown=shown).each(cursor)


def _sweep(place: Place, sweep: Sweep) -> int:
    """Raises the error that has stopped it; what was done before stays done."""
    result = run_steps(place.readers.sweeps.steps(sweep))
    if result.stopped_by is not None:
        raise result.stopped_by
    return result.count + result.workflows


class OneJob:
    """A job, by its id. Each method raises JobNotFound; of one that is gone from a named queue, some return False."""

    def __init__(self, place: Place, job_id: str, queue: str | None = None) -> None:
        self.id, self._queue = job_id, queue  # in any queue, if none is named
        self._where = place_of_job(place._name, job_id)

    @property
    def _access(self) -> JobAccess:
        return access_to_jobs(self._where)

    @property
    def _actions(self) -> Actions:
        return readers_of(self._where).actions

    def details(self) -> JobDetails:
        """All that is known of it."""
        return self._access.find(self.id, self._queue)

    def cancel(self, *, terminate: bool = False) -> CancelAnswer:
        """Cancel it, or ask it to stop if it runs: see JobHandle.cancel(). Raises WrongState."""
        return self._access.cancel(self.id, self._queue, terminate=terminate)

    def send(self, event: str, value: Any = None, *, token: str | None = None) -> None:
        """Give it an event: see JobHandle.send()."""
        self._access.send(self.id, event, value, queue=self._queue, token=token)

    def run_now(self) -> None:
        """Queue it now, if it is scheduled or retrying. Raises WrongState, also if a job of its unique key is alive."""
        self._actions.run_now(self.id, self._queue)

    def requeue(self, *, to: str = "") -> bool:
        """Queue it again, with all its attempts: see Jobs.requeue(). False: it is not dead, or a job of its unique key
        is alive."""
        return self._done("requeue", How(target=to))

    def requeue_changed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Queue a dead letter again with other arguments, which the caller has checked.

        Raises Unserializable or PayloadTooLarge for what cannot be stored, and WrongState if it is not dead.
        """
        job = self.details()
        if job.state is not JobState.DEAD or not job.task:
            raise WrongState(self.id, f"is {job.state}, not dead." if job.task else "cannot be read.")
        body = changed_body(job, args, kwargs, most_bytes=get_broker(self._where).config.max_payload_bytes)
        if not self._done("requeue", How(body=body)):
            raise WrongState(
                self.id, "is not dead any more, has died again, or is unique and another job of the same key is alive."
            )

    def discard(self) -> bool:
        """Delete it, if it is dead. False: it is not."""
        return self._done("discard")

    def _done(self, verb: Verb, how: How = PLAINLY) -> bool:
        return bool(self._actions.done(verb, self._queue or self.details().queue, [self.id], how))

    adetails = _awaited(details)
    acancel = _awaited(cancel)
    asend = _awaited(send)
    arun_now = _awaited(run_now)
    arequeue = _awaited(requeue)
    arequeue_changed = _awaited(requeue_changed)
    adiscard = _awaited(discard)


class _Named:
    """Something that has a name in a place."""

    def __init__(self, place: Place, name: str) -> None:
        self._place, self.name = place, name

    def __repr__(self) -> str:
        return f"{self._place}: {self.name}"

    @property
    def _readers(self) -> Readers:
        return self._place.readers

    def _queues(self, queue: str | None) -> list[str]:
        """The named one, or all that were used."""
        return self._place.queues.names() if queue is None else [queue]


N = TypeVar("N", bound=_Named)


class _ByName(Generic[N]):
    def __init__(self, place: Place, kind: type[N]) -> None:
        self._place, self._kind = place, kind

    def __getitem__(self, name: str) -> N:
        if not isinstance(name, str):  # or else a loop would get numbers, and not end
            raise TypeError(f"{self._kind.__name__} {name!r}: it is found by its name, and these cannot be listed.")
        return self._kind(self._place, name)


class Queue(_Named):
    """A queue."""

    @property
    def jobs(self) -> Jobs:
        """Its jobs."""
        return self._place.jobs.filter(queue=self.name)

    def details(self) -> QueueDetails:
        """How many jobs it has, and more."""
        return self._readers.queues.get(self.name)

    @property
    def is_paused(self) -> bool:
        """Whether its jobs do not start."""
        return self.details().paused

    async def ais_paused(self) -> bool:
        """is_paused for coroutines."""
        return (await self.adetails()).paused

    def pause(self, *, by: str = "") -> bool:
        """Start no more of its jobs. False: it was paused already. `by`: who does it."""
        return b"paused" in self._send("pause", by)

    def resume(self) -> bool:
        """Start its jobs again. False: it was not paused."""
        return b"resumed" in [status for status, *_ in self._send("resume", 0)]

    def _send(self, script: str, argument: str | int) -> list[Any]:
        sent = self._readers.in_each_shard(lambda shard: _send(shard, script, [(self.name, "")], argument))
        return [answer for _, answer in joined(sent)]

    def purge(self) -> int:
        """Delete all waiting jobs. Running jobs and dead letters stay. Returns how many."""
        return _sweep(self._place, Sweep(verb="purge", selection=Selection(queues=[self.name])))

    def forget(self, *, discard_outcomes: bool = False, is_dry_run: bool = False) -> str:
        """Remove it from all lists, if no shard has a reason to keep it. Returns "forgotten"; "missing": no list had
        it; or what it still has: "jobs", "paused", "limits", "workers", "recent" (jobs that finished lately may be sent
        again), "outcomes"."""

        def answers(*, is_dry_run: bool) -> set[str]:
            options = {"discard_outcomes": discard_outcomes, "is_dry_run": is_dry_run}
            return set(
                self._readers.in_each_shard(lambda shard: for_workers(shard.broker).forget(self.name, **options))
            )

        found = answers(is_dry_run=True)
        if not is_dry_run and found <= {"forgotten", "missing"}:
            found = answers(is_dry_run=False)
        reasons = sorted(found - {"forgotten", "missing"})
        return reasons[0] if reasons else "forgotten" if "forgotten" in found else "missing"

    def limits(self) -> QueueState:
        """The limits in force; of clients those that have one, are paused, run jobs, or are blocked."""
        return self._readers.clients.limits(self.name)

    def limit(self, **limits: Any) -> None:
        """Change limits of the whole queue: ``limit(max_running=5)``. The names and values are those of RTQ["QUEUES"].

        None: no limit. "settings": what RTQ["QUEUES"] says. Other limits stay. Raises ValueError.
        """
        readers, parts = self._readers, dict[str, dict[str, Any]]()
        if readers.is_of_all_shards:
            parts = {place: share_of_queue(self.name, limits, place) for place in readers.places}
        readers.in_each_shard(
            lambda shard: _limit(shard, self.name, "queue", QUEUE_LIMITS, parts.get(shard.place, limits))
        )

    def limit_clients(self, **limits: Any) -> None:
        """The same for each client, where it has no limit of its own."""
        self._readers.in_each_shard(lambda shard: _limit(shard, self.name, "clients", CLIENT_LIMITS, limits))

    adetails = _awaited(details)
    apause = _awaited(pause)
    aresume = _awaited(resume)
    apurge = _awaited(purge)
    aforget = _awaited(forget)
    alimits = _awaited(limits)
    alimit = _awaited(limit)
    alimit_clients = _awaited(limit_clients)


class Queues(_ByName[Queue]):
    """The queues that were used."""

    def names(self) -> list[str]:
        """Their names, sorted."""
        return self._place.readers.queues.names()

    anames = _awaited(names)

    def __iter__(self) -> Iterator[Queue]:
        return map(self.__getitem__, self.names())

    async def __aiter__(self) -> AsyncIterator[Queue]:
        for name in await self.anames():
            yield self[name]

    def __contains__(self, name: str) -> bool:
        return name in self.names()


class Client(_Named):
    """A client, in one queue or in all that were used."""

    @property
    def jobs(self) -> Jobs:
        """Its jobs."""
        return self._place.jobs.filter(client=self.name)

    def in_queues(self) -> list[ClientInQueue]:
        """What it has in each queue."""
        return self._readers.clients.get(self.name)

    def limit(self, queue: str | None = None, **limits: Any) -> None:
        """Change its limits: see Queue.limit(). Raises InvalidTask for a name that no client can have."""
        client_name("The client", self.name)
        names = self._queues(queue)

        def change(shard: Readers) -> None:
            for name in names:
                _limit(shard, name, f"client:{self.name}", CLIENT_LIMITS, limits)

        self._readers.in_each_shard(change)

    def pause(self, queue: str | None = None, *, by: str = "") -> list[str]:
        """Start no more of its jobs. Returns the queues where it was not paused. `by`: who does it.

        Raises InvalidTask for a name that no client can have.
        """
        client_name("The client", self.name)
        return self._switched_in(queue, by)

    def resume(self, queue: str | None = None) -> list[str]:
        """Start its jobs again. Returns the queues where it was paused."""
        return self._switched_in(queue, None)

    def _switched_in(self, queue: str | None, by: str | None) -> list[str]:
        """Pause it, or resume it: nobody does that. Returns the queues where it was not so before."""
        names, field = self._queues(queue), f"paused:{self.name}"

        def switch(shard: Readers) -> list[str]:
            keys, change = shard.broker.keys, shard.broker.limits.change
            known: list[Command] = [("HEXISTS", keys.of(name).limits, field) for name in names]
            *are_paused, (seconds, _) = shard.broker.redis.execute([*known, ("TIME",)], resend=True)
            text = "" if by is None else f"{int(seconds) * 1000} {by}"
            switched = [name for name, is_paused in zip(names, are_paused, strict=True) if is_paused == (by is None)]
            for name in names if by is None else switched:
                change(name, {f"run:{field}": text})
            return switched

        return _names(self._readers.in_each_shard(switch))

    def purge(self, queue: str | None = None) -> int:
        """Delete its waiting jobs. Running jobs and dead letters stay. Returns how many."""
        selection = Selection(queues=self._queues(queue), client=self.name)
        return _sweep(self._place, Sweep(verb="purge", selection=selection))

    def erase(self) -> int:
        """Delete all that is kept of it: waiting jobs, dead letters, outcomes, logs, steps and workflows. Returns how
        many jobs and workflows that were.

        Running jobs and limits stay, and outcomes of cancelled and expired jobs, which do not name their client. Raises
        ValueError for the client without a name.
        """
        return _sweep(self._place, Sweep(verb="erase", selection=Selection(client=self.name)))

    ain_queues = _awaited(in_queues)
    alimit = _awaited(limit)
    apause = _awaited(pause)
    aresume = _awaited(resume)
    apurge = _awaited(purge)
    aerase = _awaited(erase)


class TaskInQueues(_Named):
    """A task, in one queue or in all that were used."""

    @property
    def jobs(self) -> Jobs:
        """Its jobs."""
        return self._place.jobs.filter(task=f"={self.name}")

    def pause(self, queue: str | None = None, *, by: str = "") -> list[str]:
        """Start no more of its jobs. Returns the queues where it was not paused. Raises TooManyPausedTasks, if a queue
        has too many; the task is paused in the others then."""
        answers = joined(
            self._readers.in_each_shard(lambda shard: _send(shard, "pause", self._wanted(shard, queue), by))
        )
        paused = sorted({name for (name, _), answer in answers if answer == b"paused"})
        if full := [name for (name, _), answer in answers if answer == b"full"]:
            raise TooManyPausedTasks(full[0], paused)
        return paused

    def resume(self, queue: str | None = None) -> list[str]:
        """Start its jobs again, ahead of later jobs of their clients. Returns the queues where it was paused.

        If many jobs wait, the scheduler gives the rest back.
        """
        return _names(self._readers.in_each_shard(lambda shard: self._resume(shard, queue)))

    def _resume(self, shard: Readers, queue: str | None) -> list[str]:
        resumed, left = list[str](), self._wanted(shard, queue)
        for _ in range(MAX_CALLS):
            replies = _send(shard, "resume", left, MAINTAIN_AT_ONCE)
            resumed += [name for (name, _), (status, _, _) in replies if status == b"resumed"]
            left = [pair for pair, (_, _, has_more) in replies if has_more]
        return resumed

    def _wanted(self, shard: Readers, queue: str | None) -> list[tuple[str, str]]:
        """The queues, and its name and aliases there."""
        names = shard.queues.names() if queue is None else [queue]
        return [(name, task) for name in names for task in names_of(self.name)]

    apause = _awaited(pause)
    aresume = _awaited(resume)


def _send(
    shard: Readers, script: str, wanted: Sequence[tuple[str, str]], argument: str | int
) -> list[tuple[tuple[str, str], Any]]:
    """The replies about queues, or tasks in them, in one round trip."""
    broker = shard.broker
    calls = [SCRIPTS[script].call(broker.keys.of(queue), (task, argument)) for queue, task in wanted]
    return list(zip(wanted, broker.redis.execute(calls, resend=True) if calls else [], strict=True))


def _limit(shard: Readers, queue: str, whose: str, known: Collection[str], limits: Mapping[str, Any]) -> None:
    shard.broker.limits.change(queue, {f"run:{whose}": limits_text(known, limits)})


def _names(of_shards: Iterable[Iterable[str]]) -> list[str]:
    return sorted({*chain.from_iterable(of_shards)})


class Worker(_Named):
    """A worker. What it is asked for holds for its whole rtq_worker. Raises WorkerNotFound."""

    def quiet(self, *, by: str = "") -> None:
        """Ask it to start no more jobs until wake()."""
        self._ask(WorkerCommand.QUIET, by)

    def wake(self) -> None:
        """Ask it to start jobs again."""
        self._ask(WorkerCommand.WORK)

    def stop(self) -> None:
        """Ask it to finish running jobs and exit, as SIGTERM does."""
        self._ask(WorkerCommand.STOP)

    def reclaim(self) -> list[str]:
        """Reclaim the jobs of one whose lease has expired, at once. Returns their ids. Raises LeaseNotExpired."""
        return joined(self._readers.in_each_shard(self._reclaim))

    aquiet = _awaited(quiet)
    awake = _awaited(wake)
    astop = _awaited(stop)
    areclaim = _awaited(reclaim)

    def _ask(self, command: WorkerCommand, by: str = "") -> None:
        def ask(shard: Readers) -> None:
            if not (supervisor := supervisor_of(shard.broker, self.name)):
                raise WorkerNotFound(self.name)
            send_command(shard.broker, supervisor, command, by=by)

        self._readers.in_each_shard(ask)

    def _reclaim(self, shard: Readers) -> list[str]:
        broker, reclaimed = shard.broker, list[str]()
        note = ("HGET", broker.keys.worker(self.name), "project_version")
        version = broker.redis.execute_one(note, resend=True) or ""
        for name in shard.queues.names():
            left = 1
            while left:
                call = SCRIPTS["reclaim_child"].call(broker.keys.of(name), (self.name, AT_ONCE, version, "lapsed"))
                left, *words = broker.redis.execute_one(call, resend=True)
                if left < 0:
                    raise LeaseNotExpired(self.name)
                pairs = [word.decode() for word in words]
                reclaimed += pairs[::2]
                signals.send_reclaimed(Worker, name, self.name, list(zip(pairs[::2], pairs[1::2], strict=True)))
        return reclaimed


class Workers(_ByName[Worker]):
    """The workers."""

    def __iter__(self) -> Iterator[WorkerDetails]:
        return iter(self._place.readers.workers())

    async def __aiter__(self) -> AsyncIterator[WorkerDetails]:
        for worker in await _awaited(self.__iter__)():
            yield worker


rtq = Place()
