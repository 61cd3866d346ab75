"""What others lose or count twice when something is killed: each step starts once, and the workflow ends.

The scenes have the shape of reports about other queues: a member is killed, the whole worker is killed, the caller dies
while it makes the group, a member fails for good.
"""

from django_rtq import workflow
from tests.app import tasks as app_tasks
from tests.app import workflow_steps as tasks
from tests.support.jobs import QUEUE, WORKER, settlement
from tests.support.snapshots import live_jobs
from tests.support.waiting import PATIENCE
from tests.support.workflows import claim_members

FAST = {"LEASE_SECONDS": 1}


def group(size, member, *args):
    with workflow("group") as flow:
        members = flow.add_many(member, [((f"m{number}", *args), {}) for number in range(size)])
        flow.after(members).add(tasks.report, "callback")
    return flow.handle


def test_a_member_that_is_killed_runs_again_and_the_callback_comes_once(rtq_worker, redis, journal):
    with workflow("group") as flow:
        members = flow.add_many(app_tasks.die_once, [(("killed", "kill"), {})])
        others = flow.map(tasks.double, range(50))
        flow.after(members, others).add(tasks.report, "callback")
    rtq_worker("--processes", 2, **FAST)

    flow.handle.get(PATIENCE)

    assert journal.starts("report callback") == 1
    assert [journal.ends(f"double {number}") for number in range(50)] == [1] * 50


def test_what_follows_and_nobody_has_enqueued_is_found_by_a_heartbeat(rtq_worker, redis, broker, journal):
    """The worker has died between the end of the last member and the start of what follows."""
    handle = group(5, app_tasks.note)
    ended = settlement("ack", *claim_members(broker))
    for _, command in ended.commands(*[broker.keys.of(QUEUE)] * 2, WORKER, broker.config):
        broker.redis.execute_one(command)
    broker.sign_off([QUEUE], WORKER)
    assert handle.progress().done == 5
    assert live_jobs(redis) == {}
    redis.zadd(broker.keys.of(QUEUE).unstarted, {handle.id: 1})  # for a long time
    rtq_worker(**FAST)

    handle.get(PATIENCE)

    assert journal.starts("report callback") == 1
