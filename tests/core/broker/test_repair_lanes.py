"""What a torn log has bent is put right."""

import pytest

from tests.support.jobs import QUEUE, claim_all, names, queued_job
from tests.support.single_steps import repair_lanes
from tests.support.snapshots import MS, snapshot


@pytest.mark.parametrize(("clients", "encoding"), [(32, b"listpack"), (33, b"skiplist")])
def test_turns_of_many_clients_become_skip_lists(redis, broker, keys, clients, encoding):
    for number in range(clients):
        queued_job(broker, client=f"c{number}")
    for number in range(33):
        queued_job(broker, client=f"c{number}", priority=5)
    queued_job(broker, client="c1", priority=-5)
    before = snapshot(redis, times=False)

    assert repair_lanes(broker, QUEUE) == 0

    for key, expected in [("ring:0", encoding), ("ring:5", b"skiplist"), ("ring:-5", b"listpack")]:
        found = redis.object("encoding", keys.ring + key[5:].encode())
        assert found.replace(b"ziplist", b"listpack") == expected  # Redis before 7
    assert redis.object("encoding", keys.lanes) == b"skiplist"
    assert snapshot(redis, times=False) == before


def test_many_lanes_are_looked_at_in_several_calls(redis, broker, keys):
    for number in range(250):
        queued_job(broker, client=str(number))
    redis.delete(keys.ring + b"0")
    redis.delete(*[keys.lane + b"0:%d" % number for number in range(0, 250, 5)])

    start, starts = 0, []
    while not starts or start:
        start = repair_lanes(broker, QUEUE, start)
        starts.append(start)

    assert len(starts) <= 4
    assert set(snapshot(redis)["ring:0"]) == {str(number) for number in range(250) if number % 5}
    assert len(snapshot(redis)["lanes"]) == 200


def test_a_client_with_a_colon_in_its_name_is_found(redis, broker):
    queued_job(broker, "a", client="a:b:c")
    redis.delete(broker.keys.of(QUEUE).ring + b"0")

    repair_lanes(broker, QUEUE)

    assert snapshot(redis, times=False)["lanes"] == {"0:a:b:c": MS}
    assert names(claim_all(broker)) == ["a"]
