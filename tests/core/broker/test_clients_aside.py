"""A claim that leaves clients out: their jobs have crashed processes, and others have some."""

import pytest

from tests.support.jobs import QUEUE, WORKER, names, queued_job
from tests.support.snapshots import places_of

pytestmark = pytest.mark.parametrize("weighted", [False, True], ids=["by turns", "by weights"])


@pytest.fixture
def claim(broker, weighted, rtq):
    """Claim so many jobs of these queues, leaving clients of QUEUE out. Returns the names of the jobs."""
    if weighted:
        rtq.clients["heavy"].limit(QUEUE, weight=2)

    def act(wanted, *aside, queues=(QUEUE,)):
        broker.sign_on(queues, WORKER)
        result = broker.claim(WORKER, queues, wanted, aside=[(QUEUE, client) for client in aside])
        assert result.error is None
        return [name for claimed in result.claimed for name in names(claimed.ids)]

    return act


def test_they_get_nothing_and_the_others_all(broker, claim):
    for name in ("bad1", "a1", "bad2", "a2", "b1"):
        queued_job(broker, name, client=name[:-1])

    assert claim(10, "bad") == ["a1", "b1", "a2"]
    assert claim(10, "bad") == []
    assert claim(10) == ["bad1", "bad2"]


def test_their_jobs_keep_their_order_and_their_turn(broker, claim):
    for name in ("bad1", "a1", "bad2", "a2", "bad3", "a3"):
        queued_job(broker, name, client=name[:-1])

    assert claim(1, "bad") == ["a1"]
    assert claim(1) == ["bad1"]
    assert claim(4, "a", "bad") == []
    assert sorted(claim(4)) == ["a2", "a3", "bad2", "bad3"]


def test_as_many_jobs_as_wanted_are_found_behind_many_of_them(broker, claim):
    crashing = [f"bad{number}" for number in range(20)]
    for client in [*crashing, "a", "b", "c"]:
        queued_job(broker, client, client=client)

    assert claim(2, *crashing) == ["a", "b"]
    assert claim(1, *crashing) == ["c"]


def test_a_lower_priority_is_served_when_the_higher_has_only_them(broker, claim):
    for name, priority in (("bad1", 5), ("bad2", 2), ("a1", 2), ("a2", 0), ("bad3", -1), ("a3", -2)):
        queued_job(broker, name, client=name[:-1], priority=priority)

    assert claim(10, "bad") == ["a1", "a2", "a3"]
    assert claim(10) == ["bad1", "bad2", "bad3"]


def test_a_client_of_that_name_in_another_queue_is_not_meant(broker, claim):
    queued_job(broker, "here", client="bad")
    queued_job(broker, "there", client="bad", queue="low")

    assert claim(10, "bad", queues=(QUEUE, "low")) == ["there"]
    assert claim(10, "bad", queues=("low",)) == []


def test_what_they_have_left_still_has_a_signal(redis, broker, claim):
    job = queued_job(broker, "bad1", client="bad")
    queued_job(broker, "a1", client="a")
    claim(10, "bad")

    assert redis.zcard(f"{{rtq:{QUEUE}}}:work_signal") == 1
    assert places_of(redis, job) == ["lane:0:bad"]
