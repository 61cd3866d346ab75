"""Single script calls that production sends only as part of a heartbeat, or of a maintenance step."""

from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.broker.worker_broker import earliest_seconds, for_workers, promoted_ids
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
        _, lost, _ = for_workers(broker).tend(for_workers(broker).heartbeat([queue], {}, promote=True)[0])
        if lost:
            for_workers(broker).repair_jobs(queue)
        goes_on = int(broker.redis.execute([("HGET", clock, "repaired"), forget])[0] or 0) > 0


def promote(broker, queue, *, limit=MAINTAIN_AT_ONCE):
    """Promote due jobs. Returns the seconds until the next job is due, and the ids of those promoted."""
    reply = broker.redis.execute_one(for_workers(broker).promote_command(queue, limit), resend=True)
    return earliest_seconds([reply]), promoted_ids(reply)


def trim(broker, queue):
    """Delete what has expired. Returns how many results and dead letters; call it until that is 0."""
    results, dead, _ = broker.redis.execute_one(for_workers(broker).trim_command(queue), resend=True)
    return results + dead


def repair_lanes(broker, queue, cursor=0):
    """Repair some lanes and workers after a torn append-only file. Returns the next cursor; 0: all were seen."""
    return _repair(broker, queue, cursor)[0]


def count_lost(broker, queue=QUEUE):
    """Count the jobs of a queue that are in no place."""
    return _repair(broker, queue)[1]


def _repair(broker, queue, cursor=0):
    """Call the script. The next call counts again, however soon it comes."""
    forget = ("HDEL", broker.keys.of(queue).clock, "counted")
    return broker.redis.execute([for_workers(broker).repair_command(queue, cursor), forget], resend=True)[0]
