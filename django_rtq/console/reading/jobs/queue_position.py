"""What a job waits for in its queue: its position, and what keeps its client and its queue from starting jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django_rtq.console.log_lines import MAX_LINES, LogLine
from django_rtq.console.reading.clients.holds import NO_HOLDS, Holds, read_holds, read_task_hold
from django_rtq.console.reading.details import FinishedStep
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.one_job import check_id, first_found, names_to_ask
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import clock_moment, moment
from django_rtq.exceptions import JobNotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """What a job waits for, as far as its queue knows."""

    now: datetime  # the server's time
    workers: int  # workers of the queue; counted up to 100
    #: Jobs before it in its lane, counted up to 1,000; cancelled ones may be among them. None: not known.
    ahead: int | None
    #: Clients whose turn comes before that of its client, of higher priorities, too. None: not known, or it is blocked.
    clients_ahead: int | None = None
    after: str = ""  # the job whose end it waits for; "": none
    promoted_at: datetime | None = None  # when a scheduler last looked for due jobs
    are_workers_busy: bool = False  # no worker waits for a job: each is busy, or was asked to be quiet
    task_holds: Holds = NO_HOLDS  # why no job of its task starts: it is paused
    queue_holds: Holds = NO_HOLDS  # why no job of the queue starts
    client_holds: Holds = NO_HOLDS  # why no job of its client starts

    @classmethod
    def read(cls, reply: list[Any]) -> QueuePosition:
        """Read the reply of the script `queue_position`."""
        now_ms, workers, ahead, clients_ahead, after, promoted, is_busy, of_task, *holds = reply
        return cls(
            now=clock_moment(now_ms),
            workers=workers,
            ahead=_number(ahead),
            clients_ahead=_number(clients_ahead),
            after=after.decode(errors="replace"),
            promoted_at=moment(int(float(promoted))) if promoted else None,
            are_workers_busy=is_busy == 1,
            task_holds=read_task_hold(of_task, now_ms),
            queue_holds=_read_holds(now_ms, holds[:3]),
            client_holds=_read_holds(now_ms, holds[3:]),
        )


def _read_holds(now_ms: int, found: list[Any]) -> Holds:
    pause, most, starts_at = found
    return read_holds(now_ms, pause, _number(most), starts_at)


def _number(reply: Any) -> int | None:
    return reply if isinstance(reply, int) else None


def find_with_position(broker: Broker, job_id: str, queue: str | None) -> Steps[tuple[JobDetails, QueuePosition]]:
    """find() with its log, its finished steps, and what the job waits for if it waits. Raises JobNotFound."""
    check_id(job_id)
    names = yield from names_to_ask(broker, queue)
    calls: list[Command] = []
    for keys in map(broker.keys.of, names):
        calls += [SCRIPTS[name].call(keys, (job_id,)) for name in ("find_job", "queue_position")]
        calls.append(("LRANGE", keys.log_of(job_id), -MAX_LINES, -1))
        calls.append(("HGETALL", keys.steps + job_id.encode()))
    replies = checked((yield calls))
    try:
        details = first_found(job_id, names, replies[::4])
    except JobNotFound:
        if queue is None:
            raise
        return (yield from find_with_position(broker, job_id, None))
    place = 4 * names.index(details.queue)
    lines = [line for stored in replies[place + 2] if (line := LogLine.read(stored))]
    steps = FinishedStep.read_all(replies[place + 3])
    return replace(details, log=lines, steps=steps), QueuePosition.read(replies[place + 1])
