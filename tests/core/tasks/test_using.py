"""Copies of a task with other options."""

from django_rtq import task
from django_rtq.core.tasks import registry
from tests.support.claims import take_all


@task
def plain(a=0, b=0):
    return a, b


def test_using_makes_a_copy_and_leaves_the_task_alone():
    copy = plain.using(queue_name="bulk").using(max_attempts=9, queue_name="mail")

    assert (plain.queue_name, plain.max_attempts) == ("", None)
    assert (copy.queue_name, copy.max_attempts, copy.name) == ("mail", 9, plain.name)
    assert registry.get_task(plain.name) is plain
    assert copy(1) == (1, 0)


def test_a_copy_of_a_copy_that_was_called_forgets_what_it_changes(broker):
    copy = plain.using(max_attempts=9, expires=5, unique=True)
    copy.delay()

    copy.using(max_attempts=2, expires=None, unique=False).delay()

    first, second = take_all(broker)
    assert (first.options, second.options) == ({"max_attempts": 9}, {"max_attempts": 2})
    assert first.expires_ms > 0
    assert second.expires_ms == 0
