"""What actions that can be undone set aside, and what an undo puts back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from django_rtq.inspector.actions import LATEST
from tests.broker.model.paused_tasks import HELD, PAUSE
from tests.broker.model.queue import Queue
from tests.broker.model.state import Note, Record

if TYPE_CHECKING:
    from tests.broker.model.parallel_run import ParallelRun

KEEP_MS = 3_600_000
COPIED_BYTES = 200_000  # in one call
ASIDE = f"%s {KEEP_MS} 1000 10000000"  # the argument of discard and purge, for a token
_BESIDE = ("failures", "crashes", "errors", "waiting_since", "digests", "progress")


@dataclass(frozen=True)
class Aside:
    """A job that was deleted."""

    place: str
    at: int
    id: str
    record: Record
    beside: dict[str, Any]

    @property
    def parts(self) -> list[str]:
        """The texts that are set aside, and the sum of their lengths."""
        lines = "".join(f"{line}\n" for line in self.beside.get("errors", ()))
        rest = [lines if name == "errors" else str(self.beside.get(name, "")) for name in _BESIDE]
        parts = [f"{self.place} {self.at}", self.id, str(self.record), *rest]
        return [*parts, str(sum(len(part.encode()) for part in parts))]

    @property
    def bytes(self) -> int:
        return int(self.parts[-1])

    @property
    def copied(self) -> int:
        """What counts for the limit of a call."""
        return len(self.parts[2].encode()) + len(self.parts[5].encode())


def aside_of(model: Queue, job_id: str) -> Aside:
    """What is set aside of a job that waits or is dead."""
    places = {"dead": model.dead, "retrying": model.retrying, "scheduled": model.scheduled}
    place = next((name for name, ids in places.items() if job_id in ids), "lane")
    beside = {name: deepcopy(getattr(model, name)[job_id]) for name in _BESIDE if job_id in getattr(model, name)}
    return Aside(place, places.get(place, {}).get(job_id, 0), job_id, replace(model.jobs[job_id]), beside)


def fitting(sizes: Iterable[int]) -> int:
    """How many of the first jobs one call takes."""
    sums = list(accumulate(sizes))
    return max(sum(size <= COPIED_BYTES for size in sums), min(1, len(sums)))


def put_back(model: Queue, job: Aside) -> bool:
    """Whether it is there again."""
    if job.id in model.jobs or model.outcomes.has_finished(job.id):
        return True
    note, is_held = job.beside.get("digests"), job.at >= HELD and job.place != "dead"
    due = job.at if job.place == "dead" or note is None else _retake(model, job, note)
    if due is None:
        return False
    model.jobs[job.id] = replace(job.record)
    model.remembering.restore(job.id)
    for name, value in job.beside.items():
        getattr(model, name)[job.id] = deepcopy(value)
    if job.place == "dead":
        model.dead[job.id] = job.at
    elif job.place == "lane" or is_held:
        if is_held:
            model.waiting_since[job.id] = job.at % PAUSE
        model.places.give_back(job.id, is_unrun=False)
    else:
        model.places.schedule(job.id, due)
        if job.place == "retrying":
            model.retrying[job.id] = due
    return True


def _retake(model: Queue, job: Aside, note: Note) -> int | None:
    """When it is due, with its digest; None: another job has that."""
    if note.until == "start" and {"failures", "crashes"} & set(job.beside):
        return job.at
    if owner := model.unique_jobs.holder(note.digest):
        return job.at if model.digests[owner].successor == job.id else None
    model.unique[note.digest] = job.id
    return min(job.at, job.record.ready) if job.place == "scheduled" else job.at


class Undoing:
    """Actions of a parallel run that can be undone, and their undo."""

    def __init__(self, parallel: ParallelRun) -> None:
        self.parallel = parallel
        self.left_out: set[str] = set()  # jobs that an undo could not put back

    def discard_for_now(self, queue: str, job_ids: Sequence[str], token: str) -> None:
        """One call of the script."""
        model = self.parallel.models[queue]
        dead = [job_id for job_id in job_ids if job_id in model.dead]
        taken = dead[: self._copied(model, dead)]
        self._set_aside(model, token, taken)
        logs, expected = dict(model.logs), model.discard(taken)
        model.logs |= {job_id: logs[job_id] for job_id in expected if job_id in logs}
        reply = self.parallel._script(queue, "discard", LATEST, ASIDE % token, *job_ids)
        self.parallel.same([word.decode() for word in reply], expected)

    def purge_for_now(self, queue: str, limit: int, client: str | None, token: str) -> None:
        model = self.parallel.models[queue]
        most, limit = limit, min(limit, self._copied(model, model.purged_next(limit, client)))
        self._set_aside(model, token, model.purged_next(limit, client))
        logs, expected = dict(model.logs), model.purge(limit, client)
        model.logs |= logs
        whose = ("all", "") if client is None else ("client", client)
        self.parallel.same(self.parallel._script(queue, "purge", most, *whose, ASIDE % token), expected)

    def restore(self, queue: str, token: str, call: str, limit: int = 100) -> None:
        model = self.parallel.models[queue]
        expected = self._restored(model, token, call, limit)
        reply = self.parallel._script(queue, "restore", token, call, KEEP_MS, limit, KEEP_MS)
        self.parallel.same([word.decode() if isinstance(word, bytes) else word for word in reply], expected)

    def _copied(self, model: Queue, job_ids: Sequence[str]) -> int:
        """How many of these jobs one call deletes."""
        return fitting(aside_of(model, job_id).copied if job_id in model.jobs else 0 for job_id in job_ids)

    def _set_aside(self, model: Queue, token: str, job_ids: Sequence[str]) -> None:
        texts = [aside_of(model, job_id) for job_id in job_ids if job_id in model.jobs]
        if texts:
            gone = [name for name in model.undos if not model.aside.get(name.partition(" ")[0])]
            for name in gone:
                del model.undos[name]
            model.remembering.set_aside(job.id for job in texts)
            model.aside[token] = [*model.aside.get(token, []), *texts]
            model.undos[token] = sum(job.bytes for job in model.aside[token])

    def _restored(self, model: Queue, token: str, call: str, limit: int) -> list[Any]:
        last = str(model.undos.get(f"{token} reply", "")).split(" ", 3)
        if last[0] == call:
            return [int(last[1]), int(last[2]), *filter(None, last[3].split("\n"))]
        jobs = model.aside.get(token, [])
        if not jobs:
            return []
        number = fitting(job.bytes for job in jobs[-limit:][::-1])
        taken, left = jobs[-number:][::-1], jobs[:-number]
        back = [job.id for job in taken if put_back(model, job)]
        self.left_out |= {job.id for job in taken} - set(back)
        model.is_listed = True
        model.aside[token], model.undos[token] = left, sum(job.bytes for job in left)
        reply = [len(left), len(taken) - len(back)]
        model.undos[f"{token} reply"] = " ".join([call, *map(str, reply), "\n".join(back)])
        return [*reply, *back]
