"""Each schedule is in one shard, and the outbox leads each row to the shard of its job."""

from django.db import transaction

from django_rtq import cron, task
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import close_brokers, get_broker, open_broker
from django_rtq.core.broker.task_backends import shard_place
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.job import shard_in
from django_rtq.core.scheduler.registry import schedules_in
from django_rtq.databases.outbox import outbox_rows
from django_rtq.databases.relay import relay
from django_rtq.databases.schedule_rows import sync_rows
from django_rtq.scale.placement import shard_for, shard_of_queue
from tests.app import tasks
from tests.scale.shards.conftest import client_of, waiting
from tests.support.redis_server import LEASE_SECONDS, UNREACHABLE
from tests.support.shard_servers import on_servers

SLOT = 1_800_000_000_000


def names(number):
    return [entry.name for entry in schedules_in(shard_place(number), get_config())]


def test_a_schedule_is_in_the_shard_of_its_client_or_name(shards, no_tasks):
    for number in range(6):
        task(schedule=cron("0 5 * * *", name=f"plain {number}"))(named(f"plain{number}"))
    for shard in (0, 1):
        task(client=client_of(shard), schedule=cron("0 5 * * *", name=f"of {shard}"))(named(f"of{shard}"))

    assert sorted(names(0) + names(1)) == sorted([f"plain {n}" for n in range(6)] + ["of 0", "of 1"])
    for shard in (0, 1):
        assert f"of {shard}" in names(shard)
        plain = [name for name in names(shard) if name.startswith("plain")]
        assert plain == [f"plain {n}" for n in range(6) if shard_for(f"schedule plain {n}", (0, 1)) == shard]


def test_schedules_of_a_queue_in_one_shard_are_there(servers, shards, no_tasks):
    places = [server.url for server in servers]
    with on_servers(places, QUEUES={"ledger": {"shards": 1}}):
        ledger = shard_of_queue("ledger", (0, 1))
        for number in range(6):
            schedule = cron("0 5 * * *", name=f"{number}")
            task(queue_name="ledger", client=f"c{number}", schedule=schedule)(named(f"of_ledger{number}"))

        assert (len(names(ledger)), names(1 - ledger)) == (6, [])
        close_brokers()


def named(name):
    def function():
        """Nothing."""

    function.__qualname__ = function.__name__ = name
    return function


def test_a_slot_starts_one_job_with_an_id_of_its_shard(shards, no_tasks):
    task(client=client_of(1), schedule=cron("0 5 * * *", name="report"))(named("report"))
    (entry,) = schedules_in("#1", get_config())
    broker = for_workers(get_broker("#1"))
    broker.schedules.begin("default", "report", entry.definition, 0)

    assert [entry.fire(broker, SLOT) for _ in range(2)] == ["fired", "already"]
    assert [waiting(client) for client in shards] == [0, 1]
    job_id = entry.job_id(SLOT)
    assert (shard_in(job_id), job_id[:12]) == (1, f"{SLOT:012x}")
    assert readers_of("#1").find(job_id).client == client_of(1)


def test_rows_of_the_admin_are_copied_to_their_shards(shards):
    rows = {
        f"row {shard}": {
            "task": tasks.note.name,
            "cron": "0 5 * * *",
            "args": ["x"],
            "client": client_of(shard),
            "enabled": True,
        }
        for shard in (0, 1)
    }
    for shard in (0, 1):
        assert sync_rows(lambda: rows, shard_place(shard)) == 1
        assert list(get_broker(shard_place(shard)).schedules.read().rows) == [f"row {shard}"]


def test_the_relay_of_a_shard_sends_its_rows(database, servers, clients):
    own = {"OUTBOX": "default", "LEASE_SECONDS": LEASE_SECONDS}
    task_of_both = tasks.note.using(client=lambda name: client_of(name % 2))
    with on_servers([servers[0].url, UNREACHABLE], **own), transaction.atomic():
        handles = [task_of_both.delay(n) for n in range(4)]
    close_brokers()
    assert waiting(clients[0]) == 2
    assert sorted(outbox_rows("default").values_list("backend", flat=True)) == ["#1", "#1"]

    with on_servers([servers[0].url, servers[1].url], **own):
        outbox_rows("default").update(due_at="2020-01-01T00:00:00Z")
        brokers = [open_broker(shard_place(shard), role="scheduler") for shard in (0, 1)]
        assert [relay(broker, "default") for broker in brokers] == [0, 2]
        assert [waiting(client) for client in clients] == [2, 2]
        assert {handle.state for handle in handles} == {"queued"}
        for broker in brokers:
            broker.close()
        close_brokers()
