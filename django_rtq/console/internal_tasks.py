"""The rest of an action on many jobs, which takes too long for a web request: an internal task.

The code that enqueues it has checked a permission. So nobody can enqueue or edit its jobs in forms, schedules or
commands: see registry.get_public_task(). Each worker has it, few run it: what it needs is imported when it runs.
"""

from __future__ import annotations

from typing import Any

from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.jobs.context import current_job
from django_rtq.core.tasks.decorator import internal_task


@internal_task
def run_bulk_action(sweep: dict[str, Any]) -> int:
    """Do something with many jobs of a queue: see Sweep. Returns with how many.

    It may be interrupted anywhere and run again: requeued jobs are not dead any more, those that died again died too
    late to be meant, and what was cancelled or run now is not in that state any more.
    """
    from django_rtq.console.reading.readers import readers_of
    from django_rtq.console.reading.sweep import Sweep

    job, wanted = current_job(), Sweep.read(sweep)
    place = place_of_job(job.backend, job.job_id) if job else ""
    sweeps, done = readers_of(place).sweeps, 0
    counted = sweeps.count(wanted) if job else None
    for step in sweeps.steps(wanted):
        done += step.count
        if job and counted:
            job.progress(done, counted.count if counted.is_complete else None)
    return done
