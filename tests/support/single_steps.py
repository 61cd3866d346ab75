"""Single script calls that production sends only as part of a heartbeat, or of a maintenance step."""

from django_rtq.console.inspector.metrics.totals import read_totals, totals_commands
from django_rtq.console.inspector.task_details import TaskReader
from django_rtq.core.broker.maintenance import MAINTAIN_AT_ONCE, promoted_ids
from django_rtq.core.broker.messages import earliest_seconds
from django_rtq.core.broker.redis.client import as_dict
from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE


def renew(broker, queues, workers, *, tends="tended", pause_ms=0):
    """Renew leases, and tend the queues. Returns the seconds until the next lease of any worker ends, and the unknown
    workers."""
    entries = renewed(broker, queues, workers, tends=tends, pause_ms=pause_ms)
    return earliest_seconds(entries), {name.decode() for _, names, *_ in entries for name in names}


def renewed(broker, queues, workers=(), *, tends="tended", pause_ms=0):
    """What the script says of each queue."""
    keys, arguments = [broker.keys.of(queue) for queue in queues], (broker.lease_ms, tends, pause_ms, *workers)
    return broker.redis.execute_one(SCRIPTS["renew"].call_many(keys, arguments), resend=True)


def let_heartbeats_tend(broker, queue=QUEUE):
    """What the heartbeats of the next leases do with a queue, until they have seen all of it."""
    clock, goes_on = broker.keys.of(queue).clock, True
    forget = ("HDEL", clock, "tended", "counted")  # as if a lease had passed
    broker.redis.execute_one(forget)
    while goes_on:
        _, lost, _ = broker.tend(broker.heartbeat([queue], {}, promote=True))
        if lost:
            broker.repair_jobs(queue)
        goes_on = int(broker.redis.execute([("HGET", clock, "repaired"), forget])[0] or 0) > 0


def promote(broker, queue, *, limit=MAINTAIN_AT_ONCE):
    """Promote due jobs. Returns the seconds until the next job is due, and the ids of those promoted."""
    reply = broker.redis.execute_one(broker.maintenance.promote_command(queue, limit), resend=True)
    return earliest_seconds([reply]), promoted_ids(reply)


def trim(broker, queue):
    """Delete what has expired. Returns how many results and dead letters; call it until that is 0."""
    results, dead, _ = broker.redis.execute_one(broker.maintenance.trim_command(queue), resend=True)
    return results + dead


def roll_up(broker, queue=QUEUE):
    """Add up counters by the hour. Returns how many hours are left."""
    return broker.redis.execute_one(broker.maintenance.roll_up_command(queue), resend=True)


def read_tasks(broker, _jobs):
    """Read the metrics of all tasks, and all queues."""
    return TaskReader(broker).all()


def repair_lanes(broker, queue, cursor=0):
    """Repair some lanes and workers after a torn append-only file. Returns the next cursor; 0: all were seen."""
    return _repair(broker, queue, cursor)[0]


def count_lost(broker, queue=QUEUE):
    """Count the jobs of a queue that are in no place."""
    return _repair(broker, queue)[1]


def _repair(broker, queue, cursor=0):
    """Call the script. The next call counts again, however soon it comes."""
    forget = ("HDEL", broker.keys.of(queue).clock, "counted")
    return broker.redis.execute([broker.maintenance.repair_command(queue, cursor), forget], resend=True)[0]


def update_totals(broker, queue=QUEUE):
    """Add past counters to the totals. Returns the totals, the counters of this minute, and those of tasks in this hour
    if they are to be added."""
    hour = int(broker.redis.execute_one(("TIME",))[0]) // 3600
    replies = read_totals(hour, broker.redis.execute(totals_commands(broker.keys.of(queue), hour), resend=True))
    return [{name.decode(): int(number) for name, number in as_dict(reply).items()} for reply in replies]


def count_in_the_past(broker):
    """Make counters of an earlier minute that are not in the totals. Returns the jobs: none."""
    keys, minute = broker.keys.of(QUEUE), int(broker.redis.execute_one(("TIME",))[0]) // 60
    broker.redis.execute(
        [
            ("HSET", keys.totals, "minute", minute - 2, "hour", minute // 60 - 1, "enqueued", 5),
            ("HSET", keys.stats_of(minute - 1), "enqueued", 2),
            ("EXPIRE", keys.stats_of(minute - 1), 1000),
        ]
    )
    return []


def count_hours_ago(broker):
    """Make counters of the last hours that are not added up. Returns the jobs: none."""
    keys, minute = broker.keys.of(QUEUE), int(broker.redis.execute_one(("TIME",))[0]) // 60
    broker.redis.execute([("HSET", keys.clock, "rolled_up", minute // 60 - 3)])
    for back in (60, 120):
        broker.redis.execute([("HSET", keys.stats_of(minute - back), "enqueued", 2)])
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
    return broker.maintenance.track_incidents(found, seen_ms=second * 1000, gap_ms=500, token=f"t{second}")
