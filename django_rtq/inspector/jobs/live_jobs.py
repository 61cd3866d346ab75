"""Many jobs that are not over at once: counted, and cancelled or run now in bounded steps.

A bulk action works on a snapshot: it leaves out jobs that were made after a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.control import wake_supervisor_of
from django_rtq.broker.redis.client import clock_ms
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.details import read_found
from django_rtq.inspector.jobs import lost_replies
from django_rtq.inspector.jobs.dead_letters import STEP, BulkResult, Selection
from django_rtq.inspector.jobs.filtered_search import FilteredSearch
from django_rtq.inspector.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.inspector.queues import read_queue_details
from django_rtq.jobs.job import JobState, made_ms
from django_rtq.jobs.outcome import CANCELLED_UNRUN

LiveAction = Literal["cancel", "run_now"]
MOST_COUNTED = 10_000  # jobs that count() looks at, for each of which Redis works some µs
_AT_ONCE = 50  # calls of a script in one round trip; Redis serves nobody else meanwhile


class LiveJobs:
    """Acts on queued, scheduled, retrying and running jobs. Any thread may use it. Raises BrokerError."""

    def __init__(self, broker: Broker, sender: type) -> None:
        self._broker, self._sender = broker, sender

    def found(self, queue: str, state: str, filter: JobFilter = ALL_JOBS, *, until_ms: int | None = None) -> FoundJobs:
        """The jobs of a state that match and were made up to a moment; None: up to now."""
        overview = SCRIPTS["queue_overview"].call(self._broker.keys.of(queue), ())
        now, reply = self._broker.redis.execute([("TIME",), overview], resend=True)
        total = getattr(read_queue_details(queue, reply), state)
        is_all = not filter and until_ms is None
        until_ms = clock_ms(now) if until_ms is None else until_ms
        search = FilteredSearch(self._broker, [(queue, state)], filter)
        return FoundJobs(
            search, total, until_ms, partial(self.act, queue, state), is_all=is_all, has_filter=bool(filter)
        )

    def act(self, queue: str, state: str, action: LiveAction, job_ids: Sequence[str]) -> list[str]:
        """Cancel these jobs, or queue them now. Returns the ids that it acted on.

        Running jobs are asked to stop if the state is "running"; else those that have started meanwhile are left alone.
        """
        how, done = "ask" if state == "running" else "leave", []
        for start in range(0, len(job_ids), _AT_ONCE):
            part = job_ids[start : start + _AT_ONCE]
            done += self._cancel(queue, part, how) if action == "cancel" else self._run_now(queue, part)
        return done

    # -- inside

    def _cancel(self, queue: str, job_ids: Sequence[str], how: str) -> list[str]:
        config = self._broker.config
        keys, most, keep_ms = self._broker.keys.of(queue), config.max_results, config.cancelled_ttl_ms
        arguments = [(most, each, keep_ms, CANCELLED_UNRUN, how) for each in job_ids]
        calls = [SCRIPTS["cancel"].call(keys, each) for each in arguments]
        replies, resent_after = lost_replies.send(self._broker, calls)
        answers = {each: word for each, (word, _) in zip(job_ids, replies, strict=True)}
        for worker in {worker for word, worker in replies if word == b"asked"}:
            self._broker.redis.run(wake_supervisor_of(self._broker, worker.decode()))
        for each in job_ids:
            # After a lost reply, what is cancelled already was cancelled by the first call.
            if answers[each] == b"cancelled" or (resent_after is not None and answers[each] == b"already"):
                signals.job_cancelled.send_robust(self._sender, job_id=each, queue=queue)
        return [each for each in job_ids if answers[each] in (b"cancelled", b"asked", b"already")]

    def _run_now(self, queue: str, job_ids: Sequence[str]) -> list[str]:
        keys = self._broker.keys.of(queue)
        calls = [SCRIPTS["run_now"].call(keys, (each,)) for each in job_ids]
        replies, resent_after = lost_replies.send(self._broker, calls)
        done = [each for each, reply in zip(job_ids, replies, strict=True) if reply == b"queued"]
        if resent_after is not None:
            done += self._underway(queue, [each for each in job_ids if each not in set(done)])
        if done:
            signals.job_promoted.send_robust(self._sender, job_ids=done, queue=queue)
        return done

    def _underway(self, queue: str, job_ids: Sequence[str]) -> list[str]:
        """Those that are queued already, or were since: the replies about them may have been lost."""
        keys = self._broker.keys.of(queue)
        replies = self._broker.redis.execute([SCRIPTS["find_job"].call(keys, (each,)) for each in job_ids], resend=True)
        found = [read_found(each, queue, reply) for each, reply in zip(job_ids, replies, strict=True)]
        return [job.id for job in found if job and job.state in (JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED)]


class FoundJobs:
    """Jobs of one state that match. For one thread."""

    def __init__(
        self,
        search: FilteredSearch,
        total: int,
        until_ms: int,
        act: Callable[[LiveAction, Sequence[str]], list[str]],
        *,
        is_all: bool,
        has_filter: bool,
    ) -> None:
        self._search, self._total, self._until_ms, self._act = search, total, until_ms, act
        self._is_all, self._has_filter = is_all, has_filter

    def count(self) -> Selection:
        """Count them. All jobs of the state are not looked at; of others, the first 10,000 are.

        If there are more, the number is of those that match among these. Without a filter it is the number of all jobs
        of the state, and so includes jobs that were made after the moment.
        """
        if self._is_all:
            return Selection(count=self._total, searched=self._total, total=self._total, until_ms=self._until_ms)
        ids, cursor, searched = self._next("", STEP)
        count = len(ids)
        while cursor and searched < MOST_COUNTED:
            ids, cursor, looked = self._next(cursor, STEP)
            count, searched = count + len(ids), searched + looked
        total = max(self._total, searched + 1) if cursor else searched
        if cursor and not self._has_filter:
            count, searched = total, total
        return Selection(count=count, searched=searched, total=total, until_ms=self._until_ms)

    def steps(self, action: LiveAction, *, cursor: str = "", limit: int = STEP) -> Iterator[BulkResult]:
        """Act on all of them. Each step looks at the next `limit` jobs; its cursor lets another call continue there.

        Repeating a step does no harm.
        """
        return self.steps_of(partial(self._act, action), cursor=cursor, limit=limit)

    def steps_of(
        self, act: Callable[[Sequence[str]], list[str]], *, cursor: str = "", limit: int = STEP
    ) -> Iterator[BulkResult]:
        """steps() of another action, which returns the ids that it acted on."""
        while True:
            ids, cursor, _ = self._next(cursor, limit)
            done = act(ids)
            yield BulkResult(done=done, refused=len(ids) - len(done), cursor=cursor)
            if not cursor:
                return

    def _next(self, cursor: str, limit: int) -> tuple[list[str], str, int]:
        ids, cursor, looked = self._search.next_ids(cursor, limit)
        return [each for each in ids if made_ms(each) <= self._until_ms], cursor, looked
