"""Several shards in one Cluster: each has a slot of its own."""

import pytest
from django.test import override_settings
from redis.crc import key_slot

from django_rtq.core.broker.brokers import close_brokers, get_broker
from django_rtq.core.broker.keys import cluster_tag
from django_rtq.core.broker.task_backends import shard_place
from django_rtq.core.jobs.job import shard_in
from django_rtq.scale.placement import tag_of_shard
from tests.app import tasks
from tests.support.redis_cluster import SLOTS, PrivateCluster


def part_of(tag, count):
    """In which part of all slots the keys with this tag are."""
    return key_slot(tag.partition("}")[0].strip("{").encode()) * count // SLOTS


@pytest.mark.parametrize("count", [2, 16, 1024])
def test_each_shard_has_a_slot_in_another_part_of_all(count):
    numbers = range(0, count, max(1, count // 16))
    tags = [tag_of_shard("rtq", number, count) for number in numbers]
    parts = [part_of(tag, count) for tag in tags]
    assert tags[0] == cluster_tag("rtq")
    assert [(part - parts[0]) % count for part in parts] == list(numbers)


@pytest.mark.long
def test_jobs_are_on_the_masters_of_their_slots():
    with PrivateCluster() as cluster, override_settings(RTQ={"REDIS": {"cluster": cluster.addresses}, "SHARDS": 4}):
        handles = tasks.note.delay_many([((n,), {}) for n in range(40)])

        assert {shard_in(handle.id) for handle in handles} == set(range(4))
        assert [handle.refresh().args for handle in handles] == [[n] for n in range(40)]
        tags = [get_broker(shard_place(n)).keys.of("default").tag.decode() for n in range(4)]
        assert tags[0] == "{rtq.0.0}:default:"
        assert {part_of(tag, 4) for tag in tags} == set(range(4))
        handles[0].cancel()
        assert handles[0].state == "cancelled"
        close_brokers()
