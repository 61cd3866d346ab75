"""A workflow that is made in a transaction with the outbox is stored with it, under its id, or not at all."""

import pytest
from django.db import transaction

from django_rtq import InvalidWorkflow, WorkflowNotFound, WorkflowState, get_workflow, workflow
from django_rtq.core.broker.brokers import get_broker
from django_rtq.databases import outbox
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.models import OutboxJob
from tests.app import workflow_steps as tasks
from tests.databases.test_outbox import UNREACHABLE
from tests.databases.test_relay import make_due, move
from tests.support.jobs import QUEUE
from tests.support.snapshots import live_jobs, snapshot


@pytest.fixture(autouse=True)
def _outbox(database, broker, with_options, redis):
    with_options(OUTBOX=True)


@pytest.fixture
def without_redis(with_options):
    """Lets Redis be away for a while."""
    url = get_broker().config.redis

    def act(call):
        with_options(REDIS=UNREACHABLE, OUTBOX=True)
        made = call()
        with_options(REDIS=url, OUTBOX=True)
        make_due()
        return made

    return act


def make(**options):
    """A workflow of two steps."""
    with workflow("flow", **options) as flow:
        flow.add(tasks.add_up, flow.map(tasks.double, [1, 2]).results)
    return flow


def make_in_transaction(**options):
    with transaction.atomic():
        return make(**options)


def test_it_is_a_row_until_the_commit_and_in_redis_right_after(redis):
    with transaction.atomic():
        flow = make()
        row = OutboxJob.objects.get()
        assert (row.queue, row.task, row.format) == (QUEUE, "workflow flow", outbox.WORKFLOW_FORMAT)
        assert live_jobs(redis) == {}

    assert get_workflow(flow.id).state is WorkflowState.RUNNING
    assert len(live_jobs(redis)) == 2
    assert not OutboxJob.objects.exists()


@pytest.mark.parametrize("act", [make_in_transaction, make])
def test_a_relay_sends_it_under_its_id(redis, without_redis, act):
    """Redis was away, at the commit or without a transaction."""
    flow = without_redis(act)
    assert live_jobs(redis) == {}

    assert move() == 1

    assert flow.handle.state is WorkflowState.RUNNING
    assert len(live_jobs(redis)) == 2
    assert not OutboxJob.objects.exists()


def test_what_was_sent_and_is_sent_again_is_one(redis, monkeypatch):
    """The process was killed before it deleted the row."""
    monkeypatch.setattr("django_rtq.workflows.builder.delete_or_log", lambda *args: None)
    make_in_transaction(key="may")
    before = snapshot(redis)
    make_due()

    assert move() == 1

    assert snapshot(redis) == before
    assert not OutboxJob.objects.exists()


def test_one_that_does_not_fit_waits(redis, broker):
    broker.limits.change(QUEUE, {"run:queue": "max_waiting=1"})
    make_in_transaction()
    make_due()

    assert move() == 1
    assert "is full" in OutboxJob.objects.get().error
    assert live_jobs(redis) == {}

    broker.limits.change(QUEUE, {"run:queue": ""})
    OutboxJob.objects.update(due_at="2000-01-01T00:00Z")
    assert move() == 1
    assert len(live_jobs(redis)) == 2


def test_a_row_that_cannot_be_read_waits(redis, without_redis):
    without_redis(make_in_transaction)
    OutboxJob.objects.update(job="1")

    assert move() == 1

    assert "not the fields of a workflow" in OutboxJob.objects.get().error


def test_a_second_one_of_a_key_is_none(redis, without_redis):
    flow = without_redis(lambda: make_in_transaction(key="may"))
    other = make(key="may")

    assert move() == 1

    assert other.handle.state is WorkflowState.RUNNING
    with pytest.raises(WorkflowNotFound):
        get_workflow(flow.id)


def test_without_a_row_the_error_comes_after_the_commit(with_options):
    with_options(REDIS=UNREACHABLE, ENQUEUE_ON_COMMIT=True, OUTBOX=None)

    with pytest.raises(BrokerUnavailable):
        make_in_transaction()


def test_one_that_is_too_large_is_refused_at_once(redis, monkeypatch):
    monkeypatch.setattr("django_rtq.workflows.builder.MOST_BYTES_IN_OUTBOX", 100)

    with pytest.raises(InvalidWorkflow, match="Make it in a job"):
        make_in_transaction()

    assert not OutboxJob.objects.exists()
