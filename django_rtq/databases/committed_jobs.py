"""Deletes the rows of jobs that have committed: an internal task, which schedules start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.apps import apps

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.task_backends import places
from django_rtq.core.conf.config import get_config
from django_rtq.core.tasks.decorator import internal_task
from django_rtq.databases.clocks import database_now
from django_rtq.databases.exactly_once import STEP_MARK

ROWS_AT_ONCE = 500


@internal_task
def delete_committed_jobs(database: str) -> int:
    """Delete the rows of jobs that committed RTQ["EXACTLY_ONCE_DAYS"] ago and are not in Redis. Returns how many.

    A job that is still in Redis can run again, as a dead letter that is requeued or in a paused queue: its row is
    checked again after the same time. It may be interrupted anywhere and run again.
    """
    rows = apps.get_model("django_rtq", "CommittedJob")._base_manager.using(database)
    before = database_now() - timedelta(days=get_config().exactly_once_days)
    old = rows.filter(committed_at__lt=before).order_by("committed_at")
    deleted, jobs = 0, list(old.values_list("job_id", flat=True)[:ROWS_AT_ONCE])
    while jobs:
        ids = {row_id: row_id.partition(STEP_MARK)[0] for row_id in jobs}
        wanted = list(dict.fromkeys(ids.values()))
        stored = set[str]().union(*(known_jobs(get_broker(place), wanted, with_ended=False) for place in places()))
        gone = [row_id for row_id in jobs if ids[row_id] not in stored]
        rows.filter(pk__in=gone).delete()
        rows.filter(pk__in=[row_id for row_id in jobs if ids[row_id] in stored]).update(committed_at=database_now())
        deleted += len(gone)
        jobs = list(old.values_list("job_id", flat=True)[:ROWS_AT_ONCE])
    return deleted


def known_jobs(broker: Broker, job_ids: Sequence[str], *, with_ended: bool = True) -> set[str]:
    """Those of these jobs that are live or dead letters, or have an outcome that is kept (`with_ended`).

    It asks all queues: a job may have been requeued in another one.
    """
    known: set[str] = set()
    for keys in map(broker.keys.of, broker.queue_names()):
        for key in (keys.jobs, keys.results) if with_ended else (keys.jobs,):
            missing = [job_id for job_id in job_ids if job_id not in known]
            commands: list[Command] = [("HEXISTS", key, job_id) for job_id in missing]
            replies = broker.redis.execute(commands, resend=True) if commands else []
            known.update(job_id for job_id, reply in zip(missing, replies, strict=True) if reply)
    return known
