"""Threads that ask for a value first at the same time get one value."""

import threading

from django_rtq.core.broker.broker import shared_property
from tests.support.waiting import PATIENCE, start_thread


class Owner:
    def __init__(self):
        self.both_are_here = threading.Barrier(2)

    @shared_property
    def value(self):
        """Made by two threads at once."""
        self.both_are_here.wait(PATIENCE)
        return object()


def test_threads_that_ask_at_once_get_the_same_value():
    owner, seen = Owner(), []
    threads = [start_thread(lambda: seen.append(owner.value)) for _ in range(2)]
    for thread in threads:
        thread.join(PATIENCE)

    assert len(seen) == 2
    assert seen[0] is seen[1] is owner.value


def test_a_class_has_the_property_itself():
    assert Owner.value.__doc__ == "Made by two threads at once."
