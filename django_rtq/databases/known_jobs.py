"""Which jobs of rows are still in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django_rtq.core.broker.redis.commands import Command

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker


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
