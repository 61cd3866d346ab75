"""Several shards in one Cluster: each has a slot of its own."""

import pytest
from django.test import override_settings
from redis.crc import key_slot

from django_rtq.broker.brokers import close_brokers, get_broker
from django_rtq.broker.redis.cluster import tag_of_shard
from django_rtq.broker.task_backends import shard_place
from django_rtq.jobs.job import shard_in
from tests.app import tasks
from tests.support.redis_cluster import SLOTS, PrivateCluster


@pytest.mark.parametrize("count", [2, 16, 1024])
def test_each_shard_has_a_slot_in_its_part_of_all(count):
    numbers = range(0, count, max(1, count // 16))
    slots = [key_slot(tag_of_shard("rtq", number, count).strip("{}").encode()) for number in numbers]
    assert [slot * count // SLOTS for slot in slots] == list(numbers)


@pytest.mark.long
def test_jobs_are_on_the_masters_of_their_slots():
    with PrivateCluster() as cluster, override_settings(RTQ={"REDIS": {"cluster": cluster.addresses}, "SHARDS": 4}):
        handles = tasks.note.delay_many([((n,), {}) for n in range(40)])

        assert {shard_in(handle.id) for handle in handles} == set(range(4))
        assert [handle.refresh().args for handle in handles] == [[n] for n in range(40)]
        tags = [get_broker(shard_place(n)).keys.of("default").tag.decode() for n in range(4)]
        assert tags[0] == "{rtq.0.0}:default:"
        assert len({tag.partition("}")[0] for tag in tags}) == 4
        for number in range(1, 4):
            slot = key_slot(tags[number].partition("}")[0].strip("{").encode())
            assert slot * 4 // SLOTS == number
        handles[0].cancel()
        assert handles[0].state == "cancelled"
        close_brokers()
