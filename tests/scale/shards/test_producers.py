"""delay() and its kin find the shard of each job, also in a Cluster, and handles find their jobs there."""

import uuid
from itertools import cycle

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import override_settings
from redis.crc import key_slot

from django_rtq import (
    BrokerUnavailable,
    JobHandle,
    JobNotFound,
    NotReplicated,
    QueueFull,
    ResultTimeout,
    rtq,
)
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker import enqueue_calls
from django_rtq.core.broker.brokers import close_brokers, get_broker, substitute_broker
from django_rtq.core.broker.keys import cluster_tag
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import name_of
from django_rtq.core.broker.task_backends import config_of, shard_place
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.job import made_at, new_job_id, shard_in, with_shard
from django_rtq.scale import placement
from django_rtq.scale.placement import new_ids, tag_of_shard
from django_rtq.testing import captured, drain
from tests.app import django_tasks, tasks
from tests.scale.shards.conftest import client_of, waiting
from tests.support.jobs import new_job
from tests.support.redis_cluster import SLOTS, PrivateCluster
from tests.support.redis_server import LEASE_SECONDS, UNREACHABLE
from tests.support.shard_servers import on_servers
from tests.support.waiting import start_thread, wait_until


def test_ids_name_their_shard_and_stay_uuids_with_a_time():
    job_id = new_job_id()

    assert with_shard(job_id, 0) == job_id
    assert shard_in(job_id) == 0
    for number in (1, 7, 1023):
        found = with_shard(job_id, number)
        assert (shard_in(found), uuid.UUID(found).version, made_at(found)) == (number, 8, made_at(job_id))
        assert uuid.UUID(found).variant == uuid.RFC_4122
    assert [shard_in(text) for text in ("", "x", "0" * 12 + "8000bzzz" + "0" * 12, "0" * 12 + "8000b001")] == [0] * 4


PLACES = {  # of so many shards: where three clients, two digests and two ids are, and the queue "ledger" as a whole
    4: ((2, 3, 0, 1, 1, 3, 2), 2),
    1: ((0, 0, 0, 0, 0, 0, 0), 0),
}
JOBS = [("c1",), ("c2",), ("c3",), ("", "d1"), ("", "d2"), ("",), ("",)]


def shards_of_jobs(queue):
    """Where the settings send jobs of clients, unique ones without a client, and others."""
    new_id = new_ids("", queue)
    return tuple(shard_in(new_id(*job)) for job in JOBS)


def test_where_a_job_goes_never_changes_but_with_the_settings(monkeypatch):
    ids = cycle(f"{number:012x}70008{number * 7919:015x}" for number in range(len(JOBS)))
    monkeypatch.setattr(placement, "new_job_id", lambda shard=0: with_shard(next(ids), shard))

    for _ in range(2):
        for count, (places, ledger) in PLACES.items():
            options = {"REDIS": "redis://a", "SHARDS": count}
            with override_settings(RTQ=options):
                assert shards_of_jobs("ledger") == places
            with override_settings(RTQ={**options, "QUEUES": {"ledger": {"shards": 1}}}):
                assert set(shards_of_jobs("ledger")) == {ledger}
                assert shards_of_jobs("default") == places


def test_a_client_is_in_one_shard_and_ids_lead_there(shards):
    handles = [tasks.note.using(client=client_of(shard)).delay("x") for shard in (0, 1, 1)]

    assert [shard_in(handle.id) for handle in handles] == [0, 1, 1]
    assert [waiting(client) for client in shards] == [1, 2]
    assert {handle.state for handle in handles} == {"queued"}
    assert JobHandle(handles[1].id, "default").refresh().client == client_of(1)
    assert handles[1].cancel() == "cancelled"
    assert handles[1].state == "cancelled"
    with pytest.raises(JobNotFound):
        readers_of().find(handles[2].id)
    assert readers_of(shard_place(1)).find(handles[2].id).state == "queued"


def test_jobs_without_a_client_are_spread(shards):
    handles = tasks.note.delay_many([((i,), {}) for i in range(200)])

    assert [waiting(client) for client in shards] == [sum(shard_in(h.id) == n for h in handles) for n in (0, 1)]
    assert all(waiting(client) > 50 for client in shards)
    assert [handle.refresh().args for handle in handles[::20]] == [[i] for i in range(0, 200, 20)]


def test_delay_many_keeps_the_order_of_a_client_and_of_answers(shards):
    by_client = tasks.note.using(client=lambda name: client_of(name % 2))
    handles = by_client.delay_many([((i,), {}) for i in range(10)])

    assert [shard_in(handle.id) for handle in handles] == [0, 1] * 5
    assert [handle.refresh().args for handle in handles] == [[i] for i in range(10)]


def test_more_jobs_than_one_round_trip_takes_get_ids_of_their_shard(shards):
    handles = tasks.note.using(client=client_of(1)).delay_many([((i,), {}) for i in range(4100)])

    assert {shard_in(handle.id) for handle in handles} == {1}
    assert waiting(shards[1]) == 4100
    assert handles[-1].state == "queued"


def test_their_ids_are_known_though_a_shard_has_not_answered(shards, round_trips, monkeypatch):
    monkeypatch.setattr(enqueue_calls, "CALLS_IN_FLIGHT", 1)
    exchange = RedisClient._exchange

    def lose(self, commands, **options):
        replies = exchange(self, commands, **options)
        if name_of(commands[0]) == "EVALSHA enqueue_many":
            raise BrokerUnavailable("lost")
        return replies

    monkeypatch.setattr(RedisClient, "_exchange", lose)
    jobs = [new_job()._replace(id=with_shard(new_job_id(), 1)) for _ in range(501)]
    with pytest.raises(BrokerUnavailable):
        get_broker().enqueue("default", jobs)

    stored = {job_id.decode() for job_id in shards[1].hkeys("{rtq:default}:jobs")}
    assert len(stored) == 500
    assert stored < {job.id for job in jobs}


def test_all_or_none_needs_one_shard(shards):
    by_client = tasks.note.using(client=lambda name: client_of(name % 2))

    with pytest.raises(ValueError, match="belong to 2 shards"):
        by_client.delay_many([((i,), {}) for i in range(4)], all_or_none=True)
    assert [waiting(client) for client in shards] == [0, 0]
    assert len(by_client.delay_many([((i,), {}) for i in (1, 3)], all_or_none=True)) == 2


def test_a_unique_job_is_unique_wherever_it_is_called(shards):
    task = tasks.note.using(unique=True)
    firsts = [task.delay(str(i)) for i in range(20)]
    again = [task.delay(str(i)) for i in range(20)]

    assert {shard_in(handle.id) for handle in firsts} == {0, 1}
    assert [handle.id for handle in again] == [handle.id for handle in firsts]
    assert all(handle.duplicate for handle in again)


def test_get_waits_in_the_shard_of_the_job(shards, journal):
    handles = [tasks.note.using(client=client_of(shard)).delay(f"job {shard}") for shard in (0, 1)]
    with pytest.raises(ResultTimeout):
        handles[1].get(0.01)
    ends = []
    waits = [start_thread(lambda handle=handle: ends.append(handle.get(60))) for handle in handles]
    for place in ("", shard_place(1)):
        with substitute_broker(get_broker(place)):
            drain()
    for wait in waits:
        wait.join(60)

    assert sorted(ends) == ["job 0", "job 1"]


def test_a_shard_that_is_away_fails_its_own_jobs_only(servers, clients):
    with on_servers([servers[0].url, UNREACHABLE], LEASE_SECONDS=LEASE_SECONDS):
        handle = tasks.note.using(client=client_of(0)).delay("x")
        with pytest.raises(BrokerUnavailable):
            tasks.note.using(client=client_of(1)).delay("x")
        with pytest.raises(BrokerUnavailable):
            tasks.note.using(client=lambda name: client_of(name % 2)).delay_many([((i,), {}) for i in range(4)])
        assert handle.state == "queued"
        assert waiting(clients[0]) == 3  # the others of the call are stored
        get_broker().close()


def test_replicas_that_are_missing_are_told_for_the_whole_call(servers, shards):
    urls = [server.url for server in servers]
    with on_servers(urls, WAIT_REPLICAS=1):
        with pytest.raises(NotReplicated) as caught:
            tasks.note.delay_many([((n,), {}) for n in range(20)])
        assert [handle.state for handle in caught.value.handles] == ["queued"] * 20
        close_brokers()


@pytest.mark.django_db(transaction=True)
def test_jobs_of_a_transaction_have_their_ids_before_the_commit(shards):
    task = tasks.note.using(client=lambda name: client_of(name % 2))
    with transaction.atomic():
        handles = [task.delay_on_commit(i) for i in range(4)]
        assert [shard_in(handle.id) for handle in handles] == [0, 1] * 2
        assert [waiting(client) for client in shards] == [0, 0]

    assert [waiting(client) for client in shards] == [2, 2]
    assert {handle.state for handle in handles} == {"queued"}


def test_results_of_django_tasks_are_found_in_their_shards(shards):
    results = [django_tasks.add.enqueue(n) for n in range(20)]

    assert {shard_in(result.id) for result in results} == {0, 1}
    for result in results:
        result.refresh()
        assert django_tasks.add.get_result(result.id) == result


def test_in_tests_there_is_one_place(shards):
    with captured() as jobs:
        tasks.note.using(client=client_of(1)).delay("x")
    assert len(jobs) == 1
    with override_settings(RTQ={**settings.RTQ, "TEST_REDIS": settings.RTQ["REDIS"]}):
        handle = tasks.note.using(client=client_of(1)).delay("x")
        assert (shard_in(handle.id), handle.state) == (0, "queued")
        close_brokers()
    assert [waiting(client) for client in shards] == [1, 0]


def test_all_packets_are_sent_before_a_reply_is_read(servers, shards):
    by_client = tasks.note.using(client=lambda name: client_of(name % 2))
    by_client.delay_many([((i,), {}) for i in range(4)])  # connections are there, and both servers know the script
    servers[0].pause()
    calls = start_thread(by_client.delay_many, [((i,), {}) for i in range(10)])
    try:
        wait_until(lambda: waiting(shards[1]) == 7)
        assert calls.is_alive()
    finally:
        servers[0].resume()
        calls.join(60)
    assert waiting(shards[0]) == 7


def test_a_connection_that_is_lost_is_opened_again(servers, shards):
    by_client = tasks.note.using(client=lambda name: client_of(name % 2))
    by_client.delay_many([((i,), {}) for i in range(2)])
    for client in shards:
        client.client_kill_filter(_type="normal", skipme=True)

    assert len(by_client.delay_many([((i,), {}) for i in range(10)])) == 10
    assert [waiting(client) for client in shards] == [6, 6]


@pytest.fixture
def pinned(servers, shards):
    """Settings with a queue that is in one shard."""
    queues = {"ledger": {"shards": 1, "max_running": 1, "max_waiting": 3}}
    with on_servers([server.url for server in servers], QUEUES=queues):
        yield shards
        close_brokers()


def test_a_queue_may_be_in_one_shard_with_exact_limits(pinned):
    task = tasks.note.using(queue_name="ledger", client=lambda name: f"client {name}")
    handles = [task.delay(number) for number in range(3)]

    (number,) = {shard_in(handle.id) for handle in handles}
    assert waiting(pinned[number], "ledger") == 3
    with pytest.raises(QueueFull):
        task.delay(4)
    assert get_config().queue("ledger").max_running == 1
    for shard in (0, 1):
        assert config_of(shard_place(shard)).queue("ledger").max_running == 1


def test_no_job_is_requeued_in_a_queue_in_another_shard(pinned):
    ledger = shard_in(tasks.note.using(queue_name="ledger").delay("x").id)
    for shard in (0, 1):
        handle = tasks.bury.using(client=client_of(shard), max_attempts=1).delay("y")
        with substitute_broker(get_broker(shard_place(shard))):
            drain(raise_errors=False)
        if shard == ledger:
            assert rtq.job(handle.id).requeue(to="ledger")
            assert handle.refresh().queue == "ledger"
        else:
            with pytest.raises(ValueError, match="Queue ledger as a whole is in another shard"):
                rtq.job(handle.id).requeue(to="ledger")
            with pytest.raises(CommandError, match="Queue ledger as a whole is in another shard"):
                call_command("rtq_jobs", "requeue", handle.id, "--to", "ledger")


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
