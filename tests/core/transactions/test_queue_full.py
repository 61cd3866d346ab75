"""Jobs of a transaction that do not fit into their queue (max_waiting)."""

import pytest
from django.apps import apps
from django.db import transaction
from django.utils import timezone

from django_rtq import QueueFull
from django_rtq.core.broker.brokers import get_broker
from tests.app.tasks import note
from tests.support.apps import needs, relay
from tests.support.jobs import QUEUE

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("database", "broker")]


def test_after_a_commit_it_is_raised(names, rtq):
    rtq.queues[QUEUE].limit(max_waiting=1)

    with pytest.raises(QueueFull), transaction.atomic():
        [note.delay_on_commit(name) for name in "ab"]

    assert names() == ["a"]


@needs("databases")
def test_the_outbox_keeps_what_does_not_fit(with_options, rtq):
    rows = apps.get_model("django_rtq", "OutboxJob").objects
    with_options(OUTBOX=True)
    rtq.queues[QUEUE].limit(max_waiting=1)
    with transaction.atomic():
        jobs = note.delay_many([((name,), {}) for name in "abc"])
        other = note.using(queue_name="other").delay("d")

    assert [row.job_id for row in rows.order_by("due_at")] == [jobs[1].id, jobs[2].id]
    assert other.state == "queued"
    rows.update(due_at=timezone.now())
    assert relay(get_broker(), "default") == 2
    assert {row.attempts for row in rows.all()} == {1}
    assert "max_waiting: 1" in rows.first().error

    rtq.queues[QUEUE].limit(max_waiting=None)
    rows.update(due_at=timezone.now())
    assert relay(get_broker(), "default") == 2
    assert not rows.exists()
    assert [job.state for job in jobs] == ["queued"] * 3
