"""Cancels the waiting jobs of clients and of tasks, in bounded steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.broker.redis.commands import Argument
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.jobs.dead_letters import LATEST, BulkResult
from django_rtq.inspector.jobs.job_filter import JobFilter, RedisJobFilter
from django_rtq.inspector.jobs.job_list import JobSearch
from django_rtq.inspector.jobs.live_jobs import LiveJobs
from django_rtq.jobs.job import HELD_FROM, made_ms
from django_rtq.jobs.outcome import CANCELLED_UNRUN

WALKED_AT_ONCE = 200  # ids of which one step reads the records


class ClientCanceller:
    """Cancels the queued, scheduled and retrying jobs of clients. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker, sender: type) -> None:
        self._broker, self._sender = broker, sender

    def steps(self, client: str, queues: Iterable[str], until_ms: int = LATEST) -> Iterator[BulkResult]:
        """Cancel the waiting jobs of a client in these queues, as far as they were made up to a moment, by their ids.

        Running jobs go on. Repeating a step does no harm. Without a moment it goes on for as long as the client
        enqueues faster.
        """
        for queue in queues:
            is_cut = True
            while is_cut:  # claims that shorten a lane meanwhile let a pass overlook jobs behind those that stay
                at, is_cut, has_cancelled = b"scheduled 0", False, False
                while at:
                    at, ids = self._step(client, queue, until_ms, at)
                    is_cut = is_cut or (at != b"" and not at.endswith(b" 0"))
                    has_cancelled = has_cancelled or bool(ids)
                    yield BulkResult(done=ids, cursor=queue)
                is_cut = is_cut and has_cancelled
        yield BulkResult()

    def _step(self, client: str, queue: str, until_ms: int, at: bytes) -> tuple[bytes, list[str]]:
        config = self._broker.config
        outcome = (config.max_results, config.cancelled_ttl_ms, CANCELLED_UNRUN)
        arguments = (MAINTAIN_AT_ONCE, client, until_ms, at, *outcome)
        call = SCRIPTS["cancel_client_jobs"].call(self._broker.keys.of(queue), arguments)
        at, *cancelled = self._broker.redis.execute_one(call, resend=True)
        ids = [job_id.decode() for job_id in cancelled]
        for job_id in ids:
            signals.job_cancelled.send_robust(self._sender, job_id=job_id, queue=queue)
        return at, ids


class TaskCanceller:
    """Cancels the queued, scheduled and retrying jobs of tasks. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker, live_jobs: LiveJobs) -> None:
        self._broker, self._live_jobs = broker, live_jobs

    def steps(self, task: str, queues: Iterable[str], until_ms: int = LATEST) -> Iterator[BulkResult]:
        """Cancel the waiting jobs of a task in these queues, as far as they were made up to a moment, by their ids.

        The task is given as in a JobFilter. Running jobs go on. It reads every waiting job of the queues, some hundred
        in a step, the lanes from their ends. Repeating a step does no harm.
        """
        for queue in queues:
            wanted = RedisJobFilter(self._broker.redis, self._broker.keys.of(queue), JobFilter(task=task))
            # Claims hold back jobs of a paused task meanwhile: they go from the lanes to the end of the scheduled ones.
            for ids in chain(self._scheduled(queue), self._queued(queue), self._scheduled(queue, (HELD_FROM, ""))):
                meant = [job_id for job_id in ids if made_ms(job_id.decode(errors="replace")) <= until_ms]
                matching = [job_id.decode() for job_id in wanted.matching(meant)]
                yield BulkResult(done=self._live_jobs.act(queue, "queued", "cancel", matching), cursor=queue)
        yield BulkResult()

    def _scheduled(self, queue: str, at: tuple[float, str] | tuple[()] = ()) -> Iterator[list[bytes]]:
        """The ids of scheduled and retrying jobs, from a place on."""
        while True:
            search = JobSearch(self._broker, queue, "scheduled")
            pairs, is_last = search.read_scored("scheduled", at, WALKED_AT_ONCE, is_newest_first=False)
            yield [job_id for _due, job_id in pairs]
            if is_last or not pairs:
                return
            at = (pairs[-1][0], pairs[-1][1].decode())

    def _queued(self, queue: str) -> Iterator[list[bytes]]:
        """The ids of queued jobs. What is cancelled meanwhile stays in its lane, and is found again."""
        at: tuple[Argument, ...] = ("", "", "")
        while True:
            call = SCRIPTS["walk_lanes"].call(self._broker.keys.of(queue), (*at, WALKED_AT_ONCE))
            since, lane, seen, *ids = self._broker.redis.execute_one(call, resend=True)
            if not since:
                return
            at = (since, lane, seen)
            yield ids
