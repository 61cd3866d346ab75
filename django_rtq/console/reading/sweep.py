"""Something is done with many jobs, in bounded steps: as far as there is time, and the rest by a job of their queue.

1. `count()` says how many jobs are meant, and takes note of the moment: jobs that die, or are made, later are left out
2. `steps()` does it. Each step looks at some jobs, and says which queues are left
3. `run_steps()` adds the steps up, to the end or for some seconds. Errors do not hide what was done before

Repeating a step does no harm. What becomes a job is `stored()`: internal_tasks.py reads it, and does the same.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.console.merging import EVERY, FIRST, JOINED, MOST, SUM, UNION, by, joined, merge, sum_of_counts
from django_rtq.console.reading.actions import ACTIONS, LATEST, Actions, Answers, How, Verb
from django_rtq.console.reading.clients import ClientReader
from django_rtq.console.reading.jobs.walk import JobWalk, List, Shown
from django_rtq.console.reading.queues import QueueReader, read_queue_details
from django_rtq.console.reading.selection import WAITING, QueryError, Selection, query_error
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.handle import JobHandle
from django_rtq.exceptions import BrokerError, QueueFull
from django_rtq.workflows import workflow_store
from django_rtq.workflows.store import MOST_WORKFLOWS

STEP = 1000  # jobs that one step looks at
#: The lists that are walked for some parts of a queue: see lib/search_steps.lua. Claims hold back jobs of a paused task
#: meanwhile: they go from the lanes to the end of the delayed ones.
_LISTS = {"dead": ("oldest",), "waiting": ("delayed", "lanes", "held")}
MOST_COUNTED = 10_000  # jobs that count() looks at, for each of which Redis works some µs
MOST_DEAD_COUNTED = 100_000  # dead letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What to do, with which jobs."""

    verb: Verb
    selection: Selection
    target: str = ""  # the queue in which they are requeued; "": their own
    terminates: bool = False  # kill the processes of running jobs, if they do not stop when asked

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Sweep:
        """The opposite of stored()."""
        wanted = Selection.parse(stored["query"])
        workflow_ids = tuple(stored["workflow_ids"])
        selection = replace(wanted, workflow_ids=workflow_ids, until_ms=stored["until_ms"])
        return cls(verb=stored["action"], selection=selection, target=stored["target"])

    def stored(self) -> dict[str, Any]:
        """As the argument of a job."""
        return {
            "action": self.verb,
            "query": str(self.selection),
            "workflow_ids": list(self.selection.workflow_ids),
            "until_ms": self.selection.until_ms,
            "target": self.target,
        }

    def __post_init__(self) -> None:
        """Raises QueryError if it cannot be done with jobs in the states that are named, or only with more jobs."""
        selection, client, allowed = self.selection, self.selection.client, ACTIONS[self.verb].states
        is_all = not (selection.states or selection.ids) and selection.anywhere == Selection(client=client)
        if self.verb == "erase" and not (client and is_all):
            raise QueryError(_("erase is for all of a client that has a name."))
        if self.verb == "purge" and not is_all:
            raise QueryError(_("purge is for all jobs that wait, or all of a client; cancel those that match."))
        if wrong := [state for state in selection.states if state not in allowed]:
            why = _("%(verb)s is for jobs that are %(states)s") % {"verb": self.verb, "states": ", ".join(allowed)}
            raise query_error(f"state:{wrong[0]}", why)

    @property
    def states(self) -> Sequence[str]:
        """The states of the jobs that are meant."""
        return self.selection.states or ACTIONS[self.verb].usual_states

    def of(self, *queues: str) -> Sweep:
        """The same in these queues."""
        return replace(self, selection=replace(self.selection, queues=queues))

    def part_in(self, place: str) -> Sweep:
        """With the jobs in this shard, if they are named by their ids."""
        ids = [job_id for job_id in self.selection.ids if place_of_job("", job_id) == place]
        return replace(self, selection=replace(self.selection, ids=ids))

    def how(self, state: str) -> How:
        """How it is done with jobs in this state."""
        running = ("terminate" if self.terminates else "ask") if state == "running" else "leave"
        latest_ms = LATEST if self.selection.until_ms is None else self.selection.until_ms
        return How(latest_ms=latest_ms, target=self.target, running=running)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many jobs are meant."""

    #: Queues without any are left out.
    by_queue: Mapping[str, int] = field(
        default_factory=dict, metadata=by(lambda counts: +Counter(sum_of_counts(counts)))
    )
    #: Queues that may have more: their lists were not searched to the end.
    cut: frozenset[str] = field(default=frozenset(), metadata=UNION)
    searched: int = field(default=0, metadata=SUM)
    total: int = field(default=0, metadata=SUM)  # jobs in the lists
    until_ms: int = field(default=0, metadata=MOST)  # the moment of this snapshot
    workflows: int = field(default=0, metadata=SUM)  # that are erased with their client

    @property
    def count(self) -> int:
        """In all queues."""
        return sum(self.by_queue.values())

    @property
    def is_complete(self) -> bool:
        """Whether all jobs were looked at."""
        return self.searched >= self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was done: in one step, or in all steps together."""

    done: list[str] = field(default_factory=list, metadata=JOINED)  # ids; none of a purge
    #: What became of the jobs that were named to Redis by their ids; of the same job in several steps, the latest.
    answers: Answers = field(default_factory=dict, metadata=by(lambda each: dict(joined(map(dict.items, each)))))
    purged: int = field(default=0, metadata=SUM)  # jobs that were deleted without a look at their ids
    refused: int = field(default=0, metadata=SUM)  # how many others were found, and nothing was done with them
    workflows: int = field(default=0, metadata=SUM)  # that were erased with their client
    queues_left: Sequence[str] = field(default=(), metadata=EVERY)
    rest: Sequence[JobHandle[Any]] = field(default=(), metadata=JOINED)  # the jobs that do what is left
    #: What was done before stays done.
    stopped_by: BrokerError | QueueFull | KeyboardInterrupt | None = field(default=None, metadata=FIRST)

    @property
    def count(self) -> int:
        """With how many jobs it was done."""
        return len(self.done) + self.purged

    @property
    def is_complete(self) -> bool:
        """Whether no step is left."""
        return not self.queues_left and self.stopped_by is None


_Step = tuple[Result, bool]  # through a part of a queue, and whether it was the last one of that


class Sweeper:
    """Counts and runs sweeps. Any thread may use it. Raises BrokerError."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._actions = broker, Actions(broker)
        self._redis, self._keys = broker.redis, broker.keys

    # -- count

    def count(
        self,
        sweep: Sweep,
        *,
        most: int = 0,
        shown: Shown = lambda job: job,
    ) -> Count:
        """Count the jobs that match, and were there at the moment of the selection, or else are there now.

        Of very many, the first ones are looked at, `most` if it is given. All jobs of a state are not looked at: their
        number then includes jobs that came after the moment.
        """
        queues, until_ms = self._begin(sweep)
        count = Count(until_ms=until_ms, workflows=len(self._workflows(sweep)))
        if _is_of_client(sweep):
            in_queues = ClientReader(self._broker).get(sweep.selection.client or "", queues)
            waiting = {(found.queue, "waiting"): found.queued + found.scheduled for found in in_queues}
            return merge([count, _all_of(waiting)])
        sizes = self._sizes([(queue, name) for queue in queues for name in _lists_of(sweep.states)], until_ms)
        wanted = replace(sweep.selection, until_ms=until_ms)
        for lists, most_of_part in _parts_to_count(sweep, sizes, most):
            walk = JobWalk(self._broker, lists, wanted, sizes=sizes, shown=shown)
            part = {list_: sizes[list_] for list_ in lists}
            count = merge([count, _count(walk, part, most_of_part) if most_of_part else _all_of(part)])
        return count

    def _begin(self, sweep: Sweep) -> tuple[list[str], int]:
        """The queues, and the moment of the snapshot: when the newest dead letter died, or the time of the server.

        Not simply the server's time: while its clock is behind, jobs die after the moment that it shows.
        """
        selection, states = sweep.selection, sweep.states
        queues = list(selection.queues or QueueReader(self._broker).names())
        if selection.until_ms is not None:
            return queues, selection.until_ms
        dead = queues if "dead" in states else ()
        newest: list[Command] = [("ZREVRANGE", self._keys.of(queue).dead, 0, 0, "WITHSCORES") for queue in dead]
        time_reply, *deaths = self._redis.execute([("TIME",), *newest], resend=True)
        newest_ms = max((math.ceil(float(death[1])) for death in deaths if death), default=0)
        is_of_dead = newest_ms > 0 and set(states) == {"dead"}
        return queues, newest_ms if is_of_dead else max(newest_ms, clock_ms(time_reply))

    def _sizes(self, lists: Sequence[List], until_ms: int) -> dict[List, int]:
        """How many jobs these lists have; of dead letters those that died up to the moment."""
        dead = [queue for queue, name in lists if name == "oldest"]
        others = list(dict.fromkeys(queue for queue, name in lists if name != "oldest"))
        calls: list[Command] = [("ZCOUNT", self._keys.of(queue).dead, "-inf", until_ms) for queue in dead]
        calls += [SCRIPTS["queue_overview"].call(self._keys.of(queue), ()) for queue in others]
        replies = self._redis.execute(calls, resend=True) if calls else []
        sizes = {(queue, "oldest"): size for queue, size in zip(dead, replies, strict=False)}
        overviews = zip(others, replies[len(dead) :], strict=True)
        details = {queue: read_queue_details(queue, overview) for queue, overview in overviews}
        return {
            (queue, name): sizes[queue, name] if name == "oldest" else getattr(details[queue], name)
            for queue, name in lists
        }

    # -- act

    def steps(self, sweep: Sweep, *, limit: int = STEP, shown: Shown = lambda job: job) -> Iterator[Result]:
        """Do it, queue by queue. Each step looks at up to `limit` jobs.

        Repeating a step does no harm.
        """
        if sweep.selection.ids:
            yield from self._steps_for_ids(sweep)
            return
        queues, until_ms = self._begin(sweep)
        workflows = self._workflows(sweep)
        for workflow in workflows:  # their jobs that wait are cancelled by heartbeats
            workflow_store(self._broker).cancel(workflow)
        sweep = replace(sweep, selection=replace(sweep.selection, until_ms=until_ms))
        places = [(queue, part) for queue in queues for part in _parts(sweep)]
        for number, (queue, part) in enumerate(places):
            walk = self._walk_purge if part == "purge" else partial(self._walk_lists, part=part, shown=shown)
            for result, is_over in walk(sweep, queue, limit=limit):
                if is_over:
                    workflow_store(self._broker).sweep([queue])
                behind = places[number + is_over :] or places[-1:] * bool(workflows)
                left = dict.fromkeys(queue for queue, _ in behind)
                yield replace(result, queues_left=tuple(left))
        if workflows or not places:
            yield Result(workflows=self._forget(workflows))

    def _steps_for_ids(self, sweep: Sweep) -> Iterator[Result]:
        """Each of the jobs is in one of the queues."""
        left, known = dict.fromkeys(sweep.selection.ids), Answers()
        is_of_running = not sweep.selection.states or "running" in sweep.selection.states
        how = sweep.how("running" if is_of_running else "")
        for queue in sweep.selection.queues or QueueReader(self._broker).names():
            ids = list(left)
            for start in range(0, len(ids), MAINTAIN_AT_ONCE):
                result = self._acted(sweep.verb, queue, ids[start : start + MAINTAIN_AT_ONCE], how)
                known |= {
                    job_id: answer
                    for job_id, answer in result.answers.items()
                    if _says_more(answer) >= _says_more(known.get(job_id, "missing"))
                }
                for job_id in result.done:
                    del left[job_id]
                yield replace(result, answers={job_id: known[job_id] for job_id in result.answers})

    def purge_some(self, queue: str, client: str | None, limit: int = MAINTAIN_AT_ONCE) -> int:
        """Delete some waiting jobs, of one client if it is given. Returns how many, 0 at the end."""
        whose = ("all", "") if client is None else ("client", client)
        purge = SCRIPTS["purge"].call(self._keys.of(queue), (min(limit, MAINTAIN_AT_ONCE), *whose))
        while True:
            deleted, searched = self._redis.execute_one(purge, resend=True)
            if deleted or not searched:  # else they had all been cancelled
                return int(deleted)

    # -- inside: one part of a queue

    def _walk_lists(self, sweep: Sweep, queue: str, *, limit: int, part: str, shown: Shown) -> Iterator[_Step]:
        """Jobs of a list, or all that wait."""
        wanted, names = sweep.selection, _lists_of([part])
        if part == "waiting" and wanted.client is not None:
            names = [name if name != "lanes" else "queued" for name in names]  # only the lanes of the client
        lists, limit = [(queue, name) for name in names], max(1, min(limit, 10 * STEP))
        walk = JobWalk(self._broker, lists, wanted, shown=shown)
        verb: Verb = "discard" if (sweep.verb, part) == ("erase", "dead") else sweep.verb
        place, is_over = "", False
        while not is_over:
            ids, place = walk.next_ids(place, limit)
            is_over = not place
            yield self._acted(verb, queue, ids, sweep.how(part)), is_over

    def _walk_purge(self, sweep: Sweep, queue: str, *, limit: int) -> Iterator[_Step]:
        purged = 1
        while purged:
            purged = self.purge_some(queue, sweep.selection.client, limit)
            yield Result(purged=purged), not purged

    # -- inside

    def _workflows(self, sweep: Sweep) -> list[str]:
        """The workflows that were made for a client that is erased."""
        client = sweep.selection.client if sweep.verb == "erase" else None
        return workflow_store(self._broker).having("client", client, MOST_WORKFLOWS) if client else []

    def _forget(self, workflows: Sequence[str]) -> int:
        """Delete those that are over. Returns how many were."""
        store, now = workflow_store(self._broker), self._redis.execute_one(("TIME",), resend=True)
        return sum(store.forget(workflow, latest_ms=clock_ms(now)) == "forgotten" for workflow in workflows)

    def _acted(self, verb: Verb, queue: str, job_ids: Sequence[str], how: How) -> Result:
        answers = self._actions.act(verb, queue, job_ids, how)
        done = [job_id for job_id, answer in answers.items() if ACTIONS[verb].is_done(answer)]
        return Result(done=done, answers=answers, refused=sum(map(ACTIONS[verb].is_refused, answers.values())))


def run_steps(
    steps: Iterable[Result], *, seconds: float = math.inf, show: Callable[[int], object] | None = None
) -> Result:
    """Run steps to the end, or for about so many seconds, and add them up.

    Errors do not hide what was done before: they are part of the result. `show` is called with the number so far.
    """
    ends, count, results, stopped_by = time.monotonic() + seconds, 0, [Result()], None
    try:
        for step in steps:
            results.append(step)
            count += step.count
            if show is not None and step.count:
                show(count)
            if time.monotonic() > ends:
                break
    except (BrokerError, KeyboardInterrupt) as error:
        stopped_by = error
    return replace(merge(results), queues_left=results[-1].queues_left, stopped_by=stopped_by)


def _is_of_client(sweep: Sweep) -> bool:
    """Whether it is about all waiting jobs of a client: there is an index of them."""
    client = sweep.selection.client
    is_all_of_client = client is not None and sweep.selection.anywhere == Selection(client=client)
    return sweep.verb in ("cancel", "purge") and is_all_of_client and set(sweep.states) == set(WAITING)


def _parts(sweep: Sweep) -> Sequence[str]:
    """How the jobs of a queue are gone through, one part after the other: by states, or all at once by a script."""
    if sweep.verb in ("purge", "erase"):
        return ["purge"] if sweep.verb == "purge" else ["purge", "dead", "finished"]
    is_all = sweep.verb == "cancel" and set(sweep.states) == set(WAITING)
    return ["waiting"] if is_all else sweep.states


def _lists_of(parts: Sequence[str]) -> list[str]:
    """The lists in which the jobs of some parts are. Dead letters are queued again in the order in which they died."""
    return [name for part in parts for name in _LISTS.get(part, (part,))]


def _parts_to_count(sweep: Sweep, sizes: Mapping[List, int], most: int) -> Iterator[tuple[list[List], int]]:
    """Lists that are counted together, and at how many of their jobs to look; 0: their sizes are the number."""
    is_known = not sweep.selection.is_filtered
    dead = [list_ for list_ in sizes if list_[1] == "oldest"]
    yield dead, 0 if is_known else most or MOST_DEAD_COUNTED
    others = [list_ for list_ in sizes if list_ not in dead]
    yield others, 0 if is_known and sweep.selection.until_ms is None else most or MOST_COUNTED


def _count(walk: JobWalk, sizes: Mapping[List, int], most: int) -> Count:
    """Jobs of some lists that match. If no list is cut off, all of them were looked at."""
    counts, searched, cursor, is_over = Counter[str](), 0, "", not sizes
    while not is_over:
        found, cursor, looked = walk.count(cursor, STEP)
        counts, searched = counts + found, searched + looked
        is_over = not cursor or searched >= most
    if not cursor:
        return Count(by_queue=counts, searched=searched, total=searched)
    if not walk.is_filtered:
        return _all_of(sizes)
    cut = frozenset(list_[0] for list_ in walk.left(cursor) if sizes[list_])
    return Count(by_queue=counts, cut=cut, searched=searched, total=max(sum(sizes.values()), searched + 1))


def _says_more(answer: str) -> int:
    """Which of the answers of two queues is to be told: a job may have been requeued in the other one."""
    return {"missing": 0, "left": 0, "finished": 1}.get(answer, 2)


def _all_of(sizes: Mapping[List, int]) -> Count:
    """All jobs of these lists, whose numbers are known."""
    numbers, total = Counter[str](), sum(sizes.values())
    for (queue, _name), size in sizes.items():
        numbers[queue] += size
    return Count(by_queue=numbers, searched=total, total=total)
