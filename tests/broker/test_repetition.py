"""Whatever gets lost on the way: sending it again ends as if it had been sent once."""

from contextlib import suppress

import pytest

from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerFull, BrokerUnavailable, WrongState
from tests.broker.model.script_calls import ALL_SCENES, SCENES, seeded
from tests.support.snapshots import snapshot

ALL = ALL_SCENES
REFUSED = {"begin_schedule", "enqueue", "enqueue_many", "enqueue_unique", "fire_schedule"}  # when the server is full
SENT_TWICE = [verb for verb, scene in ALL.items() if not scene.grows]


def outcome(redis, broker, scene):
    """What is in Redis after the scene was played once."""
    scene.act(broker, seeded(redis, broker, scene))
    return snapshot(redis, times=False)


def test_every_script_has_a_scene():
    assert sorted(SCENES) == sorted(SCRIPTS)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("verb", SENT_TWICE)
def test_a_dropped_connection_ends_well(redis, broker, verb, moment):
    scene = ALL[verb]
    expected = outcome(redis, broker, scene)
    jobs = seeded(redis, broker, scene)
    redis.drop_connection(moment)

    if not scene.is_resent:
        with pytest.raises(BrokerUnavailable):
            scene.act(broker, jobs)
    with suppress(WrongState):  # what a second click hears
        scene.act(broker, jobs)

    assert snapshot(redis, times=False) == expected


@pytest.mark.parametrize("verb", SENT_TWICE)
def test_sent_twice_it_does_no_more_than_once(redis, broker, verb):
    scene = ALL[verb]
    expected = outcome(redis, broker, scene)
    jobs = seeded(redis, broker, scene)

    scene.act(broker, jobs)
    with suppress(WrongState):
        scene.act(broker, jobs)

    assert snapshot(redis, times=False) == expected


@pytest.mark.parametrize("verb", sorted(verb for verb in ALL if verb.split(",")[0] not in REFUSED))
def test_a_full_server_can_be_drained(redis, broker, verb):
    scene = ALL[verb]
    expected = outcome(redis, broker, scene)
    jobs = seeded(redis, broker, scene)

    with redis.full_memory():
        scene.act(broker, jobs)

    assert snapshot(redis, times=False) == expected


def test_a_full_server_takes_no_jobs_and_says_so(redis, broker):
    scene = SCENES["enqueue"]
    jobs = seeded(redis, broker, scene)
    before = snapshot(redis)

    with redis.full_memory(), pytest.raises(BrokerFull, match="nothing was stored"):
        scene.act(broker, jobs)

    assert snapshot(redis) == before
