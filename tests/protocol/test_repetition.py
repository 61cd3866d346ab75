"""Whatever gets lost on the way: sending it again ends as if it had been sent once."""

from contextlib import suppress

import pytest

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerFull, BrokerUnavailable, WrongState
from tests.core.broker.test_heartbeat import beat
from tests.protocol.model.script_calls import ALL_CALLS, SCRIPT_CALLS, prepared
from tests.support.jobs import QUEUE, WORKER, claim_all, settle
from tests.support.snapshots import live_jobs, snapshot

ALL = ALL_CALLS
REFUSED = {
    "append_log",
    "begin_schedule",
    "enqueue",
    "enqueue_many",
    "fire_schedule",
    "add_members",
    "store_workflow",
}  # when the server is full
SENT_TWICE = [verb for verb, call in ALL.items() if not call.grows]


def outcome(redis, broker, call):
    """What is in Redis after the call was played once."""
    call.act(broker, prepared(redis, broker, call))
    return snapshot(redis, times=False)


def test_every_script_has_a_scene():
    assert sorted(SCRIPT_CALLS) == sorted(SCRIPTS)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", SENT_TWICE)
def test_a_dropped_connection_ends_well(redis, broker, verb, moment):
    call = ALL[verb]
    expected = outcome(redis, broker, call)
    jobs = prepared(redis, broker, call)
    redis.drop_connection(moment)

    if not call.is_resent:
        with pytest.raises(BrokerUnavailable):
            call.act(broker, jobs)
    with suppress(WrongState):  # what a second click hears
        call.act(broker, jobs)

    assert snapshot(redis, times=False) == expected


@pytest.mark.parametrize("verb", SENT_TWICE)
def test_sent_twice_it_does_no_more_than_once(redis, broker, verb):
    call = ALL[verb]
    expected = outcome(redis, broker, call)
    jobs = prepared(redis, broker, call)

    call.act(broker, jobs)
    with suppress(WrongState):
        call.act(broker, jobs)

    assert snapshot(redis, times=False) == expected


@pytest.mark.parametrize("verb", sorted(verb for verb in ALL if verb.split(",")[0] not in REFUSED))
def test_a_full_server_can_be_drained(redis, broker, verb):
    call = ALL[verb]
    expected = outcome(redis, broker, call)
    jobs = prepared(redis, broker, call)

    with redis.full_memory():
        call.act(broker, jobs)

    assert snapshot(redis, times=False) == expected


def test_a_full_server_takes_no_jobs_and_says_so(redis, broker):
    call = SCRIPT_CALLS["enqueue"]
    jobs = prepared(redis, broker, call)
    before = snapshot(redis)

    with redis.full_memory(), pytest.raises(BrokerFull, match="nothing was stored"):
        call.act(broker, jobs)

    assert snapshot(redis) == before


def test_what_a_lost_reply_had_claimed_is_written_down(redis, broker):
    call = SCRIPT_CALLS["claim"]
    jobs = prepared(redis, broker, call)
    redis.drop_connection("after")

    with pytest.raises(BrokerUnavailable):
        call.act(broker, jobs)
    unknown = broker.running(WORKER, [QUEUE])[QUEUE]
    settle(broker, "release", *(job for job in jobs if job.id.encode() in unknown))

    assert len(unknown) == 3
    assert set(claim_all(broker)) == set(live_jobs(redis)) == {job.id for job in jobs}


def test_an_audit_goes_along_with_a_heartbeat(redis, broker):
    prepared(redis, broker, SCRIPT_CALLS["repair_lanes"])

    beat(broker)

    assert set(snapshot(redis)["ring:0"]) == {"x", "y"}
