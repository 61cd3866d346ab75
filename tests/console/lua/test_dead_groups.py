"""Dead letters added up where they lie. What the sums say is tested in test_dead_letters.py."""

import pytest

from django_rtq.console.reading.jobs import dead_letters
from django_rtq.core.broker.scripts import SCRIPTS
from tests.console.lua.test_dead_letters import bury
from tests.support.jobs import QUEUE


def groups(readers, depth=10_000):
    """Task, kind and number of each, the largest first."""
    found = [(group.task, group.error_class, group.count) for group in readers.dead_letters.all_groups(depth).groups]
    return sorted(found, key=lambda group: (-group[2], group[0]))


@pytest.fixture
def small_steps(monkeypatch):
    """Three letters a script."""
    monkeypatch.setattr(dead_letters, "GROUPED_AT_ONCE", 3)


def test_what_several_scripts_found_is_added_up(small_steps, redis, broker, readers):
    jobs = [bury(broker, "ship", message=str(number)) for number in range(10)]
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: 1_000_000 + 60_000 * place for place, job in enumerate(jobs)})
    bury(broker, "mail")

    found = readers.dead_letters.all_groups()

    assert [(group.task, group.count) for group in found.groups] == [("mail", 1), ("ship", 10)]
    assert [group.message for group in readers.dead_letters.with_messages(found.groups)] == ["no", "9"]
    assert (found.groups[1].last_at - found.groups[1].first_at).total_seconds() == 9 * 60
    assert (found.searched, found.total) == (11, 11)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7, 9])
def test_it_looks_no_deeper_than_asked(small_steps, redis, broker, readers, depth):
    redis.zadd(broker.keys.of(QUEUE).dead, {bury(broker, "old").id: 1})
    for _ in range(8):
        bury(broker, "ship")
    for _ in range(2):  # the second time it knows how many there are
        found = readers.dead_letters.all_groups(depth)
        in_order = [("ship", min(depth, 8)), *([("old", 1)] if depth > 8 else ())]
        assert [(group.task, group.count) for group in found.groups] == in_order
        assert (found.searched, found.total) == (depth, 9)


def test_odd_names_are_grouped_by_what_they_say(redis, broker, readers):
    for task in ('a"b', 'a"b', "a\\b", "a\nb", "ä"):
        bury(broker, task, kind="x.Y")
    assert groups(readers) == [('a"b', "x.Y", 2), ("a\nb", "x.Y", 1), ("a\\b", "x.Y", 1), ("ä", "x.Y", 1)]


@pytest.fixture
def reads(monkeypatch):
    """Collects how many dead letters each script was to group."""
    sizes, call = [], SCRIPTS["dead_groups"].call

    def counted(keys, arguments):
        sizes.append(arguments[1])
        return call(keys, arguments)

    monkeypatch.setattr(SCRIPTS["dead_groups"], "call", counted)
    return sizes


def test_what_has_not_changed_is_not_read_again(redis, broker, readers, reads):
    jobs = [bury(broker, "ship") for _ in range(3)]
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: 1000 + place for place, job in enumerate(jobs)})

    assert [groups(readers) for _ in range(2)] == [[("ship", "builtins.ValueError", 3)]] * 2
    assert reads == [3]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_after_one_has_left_all_are_read(redis, broker, readers, reads, place):
    jobs = [bury(broker, f"ship_{number}") for number in range(3)]
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: 1000 + number for number, job in enumerate(jobs)})
    groups(readers)
    readers.actions.done("discard", QUEUE, [jobs[place].id])

    left = [(f"ship_{n}", "builtins.ValueError", 1) for n in range(3) if n != place]
    assert groups(readers) == left
    redis.zadd(broker.keys.of(QUEUE).dead, {bury(broker, "mail").id: 10**14})
    readers.actions.done("discard", QUEUE, [jobs[(place + 1) % 3].id])  # one has come, and one has left
    assert len(groups(readers)) == 2


def test_one_that_was_requeued_and_died_again_is_read(redis, broker, readers, reads):
    job = bury(broker, "ship")
    first = readers.dead_letters.all_groups().groups[0].last_at
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: 10**14})

    assert readers.dead_letters.all_groups().groups[0].last_at > first
