"""Shared memory for tests, with some jobs and a running one."""

from django_rtq.core.broker.settlement import Report
from django_rtq.core.worker.shared_memory import ACKED, SharedState

ID = b"01a1fa94eeb97e2fb167e897ae5634a7"
IDS = [b"%032x" % number for number in range(5)]


def names(job_ids):
    return [job_id.decode() for job_id in job_ids]


def acked(job_id, text, ms=1):
    return Report(ACKED, job_id, ms, text)


def running(slots=1, job_id=ID):
    """A page with one job that runs, and its entry."""
    shared = SharedState(slots)
    entry = 0
    if slots == 1:
        shared.start_batch([job_id])
    else:
        entry = shared.add_entry(job_id)
    assert shared.start(entry)
    return shared, entry
