"""Single script calls of the console, which production sends only as part of a page, or of a maintenance step."""

from django_rtq.console.incidents import watcher
from django_rtq.console.reading.metrics.reader import Totals
from django_rtq.console.reading.task_details import TaskReader
from django_rtq.console.roll_up import RollUp
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.workflows import workflow_store
from tests.support.jobs import QUEUE


def roll_up(broker, queue=QUEUE):
    """Add up counters by the hour. Returns how many hours are left."""
    return broker.redis.execute_one(RollUp(broker, [queue]).command(queue), resend=True)


def read_tasks(broker, _jobs):
    """Read the metrics of all tasks, and all queues."""
    return TaskReader(broker).all()


def update_totals(broker, queue=QUEUE):
    """Add past counters to the totals. Returns them with the present counters."""
    hour = int(broker.redis.execute_one(("TIME",))[0]) // 3600
    return Totals.read_all(broker, [queue], hour)[queue]


def count_in_the_past(broker):
    """Make counters of an earlier minute that are not in the totals. Returns the jobs: none."""
    keys, minute = broker.keys.of(QUEUE), int(broker.redis.execute_one(("TIME",))[0]) // 60
    broker.redis.execute(
        [
            ("HSET", keys.totals, "minute", minute - 2, "hour", minute // 60 - 1, "enqueued", 5),
            ("HSET", keys.stats + b"%d" % (minute - 1), "enqueued", 2),
            ("EXPIRE", keys.stats + b"%d" % (minute - 1), 1000),
        ]
    )
    return []


def count_hours_ago(broker):
    """Make counters of the last hours that are not added up. Returns the jobs: none."""
    keys, minute = broker.keys.of(QUEUE), int(broker.redis.execute_one(("TIME",))[0]) // 60
    broker.redis.execute([("HSET", keys.clock, "rolled_up", minute // 60 - 3)])
    for back in (60, 120):
        broker.redis.execute([("HSET", keys.stats + b"%d" % (minute - back), "enqueued", 2)])
    return []


def see_incidents(broker):
    """Let two incidents open. Returns the jobs: there are none."""
    for second in (1, 2):
        track_incidents(broker, second, "a", "b")
    return []


def run_old_version(broker):
    """A supervisor reports a version. Returns the jobs: there are none."""
    report_version(broker, "1")
    return []


def report_version(broker, version):
    """A supervisor reports that its workers run this version."""
    call = SCRIPTS["note_version"].call(broker.keys.of(QUEUE), (version, 60_000))
    return broker.redis.execute_one(call, resend=True).decode()


def track_incidents(broker, second, *ids):
    """A view of these incidents, at that second."""
    found = {each: each.upper() for each in ids}
    return watcher.track_incidents(broker, found, seen_ms=second * 1000, gap_ms=500, token=f"t{second}")


def requeue_elsewhere(broker, jobs, target, *, queue=QUEUE):
    """Queue dead letters in another queue, whether settings name it or not; answers the ids."""
    call = SCRIPTS["requeue"].call_many(
        [broker.keys.of(name) for name in (queue, target)], (10**15, "", *(job.id for job in jobs))
    )
    queued = [job_id.decode() for job_id in broker.redis.execute_one(call, resend=True)]
    workflow_store(broker).tell(target, queued)
    return queued
