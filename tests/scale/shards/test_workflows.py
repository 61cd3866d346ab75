"""A workflow is in the shard of its jobs: there hold the limits of their clients and queues."""

import io
import json

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from django_rtq import get_workflow, workflow
from django_rtq.core.broker.brokers import close_brokers, get_broker
from django_rtq.core.broker.task_backends import shard_place
from django_rtq.core.jobs.job import shard_in
from django_rtq.databases.outbox import outbox_rows
from django_rtq.databases.relay import relay
from django_rtq.exceptions import InvalidWorkflow
from django_rtq.scale.placement import shard_for
from tests.app import tasks
from tests.app.workflow_steps import double, report
from tests.console.admin.conftest import operator, person  # noqa: F401
from tests.scale.shards.conftest import client_of, waiting
from tests.support.redis_server import LEASE_SECONDS
from tests.support.shard_servers import on_servers

BOTH = pytest.mark.parametrize("shard", [0, 1])
PINNED = {shard: next(f"q{n}" for n in range(99) if shard_for(f"queue q{n}", (0, 1)) == shard) for shard in (0, 1)}
RTQ = "/admin/django_rtq/"


@pytest.fixture
def pinned(servers, shards):
    """Settings with a queue in each shard as a whole."""
    queues = {name: {"shards": 1} for name in PINNED.values()}
    places = [server.url for server in servers]
    with on_servers(places, LEASE_SECONDS=LEASE_SECONDS, QUEUES=queues):
        yield shards
        close_brokers()


def with_keys(shards):
    """How many workflows each shard has."""
    return [len(client.keys("*:workflow:*")) for client in shards]


def in_shard(shard, queue=None):
    """A task whose jobs have to be in a shard: by their client, or by their queue."""
    return tasks.note.using(queue_name=PINNED[shard]) if queue else tasks.note.using(client=client_of(shard))


@BOTH
@pytest.mark.parametrize("by", ["client", "task", "queue", "both"])
def test_it_is_where_its_jobs_have_to_be(pinned, shard, by):
    client = client_of(1 - shard if by == "both" else shard) if by in ("client", "both") else None
    with workflow("x", client=client) as flow:
        flow.add(tasks.note if by == "client" else in_shard(shard, "queue" if by in ("queue", "both") else None), "a")

    assert shard_in(flow.id) == shard_in(flow.handle.id) == shard
    assert with_keys(pinned) == [1 - shard, shard]
    assert waiting(pinned[shard], PINNED[shard] if by in ("queue", "both") else "default") == 1


@BOTH
def test_the_first_job_that_has_to_be_somewhere_decides_it(shards, shard):
    with workflow("x") as flow:
        first = flow.add(double, 1)
        second = flow.add(double, first.result)
        flow.add(in_shard(shard), second.result)
    fields = flow.handle.progress().fields
    calls = b"".join(shards[shard].hvals("{rtq:default}:waiting_members:" + flow.id))

    assert (shard_in(flow.id), with_keys(shards)) == (shard, [1 - shard, shard])
    assert len(fields["task:1"]) > 0
    assert calls.count(f'"{flow.id}"'.encode()) == 2  # the two results that are taken


@pytest.mark.parametrize("queue", [None, "queue"])
@pytest.mark.parametrize("settled", ["job", "key", "id"])
def test_a_job_that_has_to_be_elsewhere_is_refused(pinned, queue, settled):
    def make():
        with workflow("x", key="k" if settled == "key" else None) as flow:
            if settled == "job":
                flow.add(in_shard(0), "a")
            elif settled == "id":
                assert flow.id
            for shard in (0, 1):
                flow.add(in_shard(shard, queue), "b")

    with pytest.raises(InvalidWorkflow, match=r"is in shard \d, and jobs of tests.app.tasks.note .* are in shard \d"):
        make()
    assert with_keys(pinned) == [0, 0]


def test_one_with_a_key_exists_once(shards):
    flows = []
    for _ in range(2):
        with workflow("x", key="k") as flow:
            flow.add(report, "a")
        flows.append(flow.handle)
    assert flows[0] == flows[1]
    assert sum(with_keys(shards)) == 1


@BOTH
def test_its_id_leads_pages_and_commands_to_it(shards, operator, shard):  # noqa: F811
    with workflow("month-end") as flow:
        flow.add(in_shard(shard), "a")
    with workflow("other", client=client_of(1 - shard)) as other:
        other.add(report, "a")

    def command(*arguments):
        output = io.StringIO()
        call_command("rtq_workflows", *arguments, "--json", stdout=output)
        return json.loads(output.getvalue())

    assert get_workflow(flow.id) == flow.handle
    assert {row["id"] for row in command("list")["workflows"]} == {flow.id, other.id}
    assert [row["id"] for row in command("show", flow.id)] == [flow.id]
    listed = operator.get(f"{RTQ}workflow/").content.decode()
    assert flow.id in listed
    assert other.id in listed
    assert "month-end" in operator.get(f"{RTQ}workflow/{flow.id}/").content.decode()
    for query in (f"workflow:{flow.id}", "workflow:month-end"):
        assert client_of(shard) in operator.get(f"{RTQ}job/search/", {"q": query}).content.decode(), query
    assert operator.post(f"{RTQ}workflow/{flow.id}/cancel/", follow=True).status_code == 200
    assert flow.handle.state == "cancelled"
    assert waiting(shards[shard]) == 0


@BOTH
@pytest.mark.django_db(transaction=True)
def test_the_outbox_sends_it_to_its_shard(shards, shard):
    with override_settings(RTQ={**settings.RTQ, "OUTBOX": True}):
        with transaction.atomic():
            with workflow("x") as flow:
                flow.add(in_shard(shard), "a")
            row = outbox_rows("default").get()
            transaction.set_rollback(True)
        assert row.backend == shard_place(shard)
        row.due_at = row.due_at.replace(year=2020)
        row.save(force_insert=True)
        assert relay(get_broker(shard_place(1 - shard)), "default") == 0
        assert relay(get_broker(shard_place(shard)), "default") == 1
    assert with_keys(shards) == [1 - shard, shard]
