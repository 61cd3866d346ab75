"""The outbox as delay() and commits use it: see core/transactions.py."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from django_rtq.core.broker.messages import EnqueueCall, is_refusal
from django_rtq.core.broker.task_backends import place_of, place_of_job, shard_of
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.transactions import Answers, Outbox, away, has_transaction, outbox_database, refusal
from django_rtq.databases.outbox import delete_or_log, outbox_lag, store
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerUnavailable

logger = logging.getLogger("django_rtq")


class _Outbox:
    """Its rows, and what is logged of outages: of each it is logged once.

    Any thread may use it. A call with jobs for several shards does not say which of them failed: it is about all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def store(self, alias: str, task: str, call: EnqueueCall) -> list[Any]:
        return store(alias, task, call)

    def store_instead(self, task: str, call: EnqueueCall, error: BrokerError) -> bool:
        alias = outbox_database()
        if alias is None or has_transaction(alias):
            return False
        store(alias, task, call)
        extra = about_jobs([job.id for job in call.jobs], task=task, queue=call.queue)
        level = logging.WARNING if self._begins_outage(call, error) else logging.DEBUG
        text = "Redis did not accept %d job(s) of %s; they wait in the outbox, as the next ones do: %s"
        logger.log(level, text, len(call.jobs), task, error, extra=extra)
        return True

    def note_answers(self, calls: Sequence[tuple[EnqueueCall, Answers]], alias: str = "") -> None:
        answered = [(call, answers) for call, answers in calls if not isinstance(answers, BrokerError)]
        stored = [
            job.id
            for call, answers in answered
            for job, answer in zip(call.jobs, answers, strict=True)
            if not is_refusal(answer)
        ]
        if alias and stored:
            delete_or_log(alias, stored)
        if away:
            for call, _ in answered:
                self._end_outage(call)
        refused = [(call, error) for call, answers in calls if (error := refusal(call, answers))]
        if alias and refused:
            extra = about_jobs([job.id for call, _ in refused for job in call.jobs])
            told = [error for call, error in refused if self._begins_outage(call, error)]
            text = "Redis did not accept the jobs of a transaction; they wait in the outbox, as the next ones do: %s"
            logger.log(logging.WARNING if told else logging.DEBUG, text, (told or [refused[0][1]])[0], extra=extra)

    def _end_outage(self, call: EnqueueCall) -> None:
        with self._lock:
            ended = sorted(away & _places_of(call))
            away.difference_update(ended)
        for place in ended:
            alias = outbox_database()
            lag = None if alias is None or has_transaction(alias) else outbox_lag(place)
            waits = f", and {lag.jobs} job(s) wait in the outbox for a relay" if lag and not lag.error else ""
            where = "Redis" if shard_of(place) is None else f"Shard {shard_of(place)}"
            logger.info("%s accepts jobs again%s", where, waits)

    def _begins_outage(self, call: EnqueueCall, error: Exception) -> bool:
        """Whether this error is to be logged as a warning: it is of no outage, or of one that was not noticed yet."""
        if not isinstance(error, BrokerUnavailable | BrokerFull):
            return True
        with self._lock:
            places = _places_of(call)
            is_new = away.isdisjoint(places)
            away.update(places)
        return is_new


def _places_of(call: EnqueueCall) -> set[str]:
    return {place_of(place_of_job(call.backend, job.id)) for job in call.jobs}


OUTBOX: Outbox = _Outbox()
