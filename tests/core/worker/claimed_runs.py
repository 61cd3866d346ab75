"""Jobs that a session claims and settles, without a worker process."""

from django_rtq.core.worker.outcome import ACKED, Outcome
from django_rtq.core.worker.run import runs_of
from tests.support.jobs import queued_job

BODY = '{"task":"tests.app.tasks.note","args":["x"]}'
DONE = Outcome(ACKED, text='{"state":"succeeded"}')


def claim(session, wanted=10):
    """Runs of what a fetch brings."""
    runs = claim_unread(session, wanted)
    for run in runs:
        run.open()
    return runs


def claim_unread(session, wanted=10):
    """The same, before anybody has looked into the records."""
    fetched = session.fetch(wanted, idle=True)
    return [run for claimed in fetched.claimed for run in runs_of(claimed, session.worker)]


def claim_new(broker, session, count=1, *, wanted=10):
    """Runs of so many jobs that are enqueued before."""
    enqueue(broker, count)
    return claim(session, wanted)


def enqueue(broker, count=1):
    return [queued_job(broker, body=BODY) for _ in range(count)]
