"""Names, headers and copies of tasks through the door of django.tasks."""

import django
import pytest

from django_rtq import task
from django_rtq.backend import RTQTask
from django_rtq.core.tasks import registry
from tests.app import django_tasks as tasks

pytestmark = pytest.mark.usefixtures("forget_tasks")


def charge(order_id):
    return order_id


def pay(order_id):
    return order_id


def test_a_named_task_is_enqueued_under_its_name(broker, readers):
    named = task(name="shop.charge")(charge)
    result = named.enqueue(5)
    assert readers.find(result.id).task == "shop.charge"
    assert named.get_result(result.id).args == [5]


def test_headers_go_with_the_jobs(broker, readers):
    result = tasks.add.using(headers={"tenant": "acme"}).using(headers={"a": 1}).enqueue(1)
    assert readers.find(result.id).headers == {"tenant": "acme", "a": 1}


def test_enqueue_keeps_what_using_has_changed(broker, readers):
    copy = task(charge).using(client="acme", headers={"a": 1}, max_attempts=7, run_after=3600, priority=2)
    details = readers.find(copy.enqueue(5).id)
    assert (details.client, details.headers, details.options) == ("acme", {"a": 1}, {"max_attempts": 7})
    assert (details.state, details.priority) == ("scheduled", 2)


@pytest.mark.skipif(django.VERSION < (6, 1), reason="@task of earlier versions takes no other options")
def test_a_copy_of_a_task_with_any_options_can_be_made(broker, readers):
    from django.tasks import task as django_task

    declared = django_task(
        retry_on=OSError, backoff=3, give_up_on=[ValueError], aliases=["shop.tasks.old_pay"], client=5
    )(pay)
    assert isinstance(declared, RTQTask)

    result = declared.using(priority=1).enqueue(1)

    assert readers.find(result.id).priority == 1
    assert registry.get_task("shop.tasks.old_pay") is registry.get_task(f"{__name__}.pay")


def test_names_of_other_queues_are_refused_with_ours():
    with pytest.raises(TypeError, match=r"A task of django\.tasks does not take 'queue'\. Write queue_name=…\."):
        tasks.add.using(queue="mail")
    with pytest.raises(TypeError, match=r"does not take 'name'\. It takes: aliases, "):
        tasks.add.using(name="x")
    with pytest.raises(AttributeError, match=r"tests\.app\.django_tasks\.add has no s. There are no signatures"):
        tasks.add.s(1)


def test_retries_are_chosen_at_the_call(broker, readers):
    result = tasks.add.using(max_attempts=3, backoff=[10, 60]).enqueue(1)
    assert readers.find(result.id).options == {"max_attempts": 3, "backoff": [10, 60]}
    result = task(charge).using(backoff=5).enqueue(1)
    assert readers.find(result.id).options == {"backoff": 5}
    assert readers.find(tasks.add.using(priority=3).enqueue(1).id).options == {}
