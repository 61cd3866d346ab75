"""Pages of jobs that wait: priorities first, then clients by their turns, of each its jobs in order."""

import pytest

from django_rtq.console.reading.jobs.walk import encode_cursor
from django_rtq.console.reading.selection import Selection
from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import (
    QUEUE,
    claim,
    claimed_jobs,
    let_fall_due,
    names,
    new_job,
    queued_job,
    scheduled_job,
    settle,
)


def queue_up(broker, *marks, **options):
    """Jobs of which each is named by its client and a number: x1."""
    for mark in marks:
        queued_job(broker, mark, client=mark[0], **options)


def page(readers, cursor="", limit=50, **wanted):
    """The names of a page, and where to go on."""
    found = readers.search([(QUEUE, "queued")], filter=Selection(**wanted)).page(cursor=cursor, limit=limit)
    return names(job.id for job in found.jobs), found.next_cursor


def pages(readers, limit, **wanted):
    found, cursor = page(readers, limit=limit, **wanted)
    taken = [found]
    while cursor:
        found, cursor = page(readers, cursor, limit, **wanted)
        taken.append(found)
    return taken


@pytest.fixture
def _many_jobs(redis, broker):
    queue_up(broker, "x1", "y1", "x2", "z1", "x3")
    queue_up(broker, "y9", "x9", priority=5)


@pytest.mark.usefixtures("_many_jobs")
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7])
def test_a_page_goes_on_where_the_last_one_ended(readers, limit):
    in_order = ["y9", "x9", "x1", "x2", "x3", "y1", "z1"]

    taken = pages(readers, limit)

    assert [name for names_of_page in taken for name in names_of_page] == in_order
    assert all(len(names_of_page) == limit for names_of_page in taken[:-1])


@pytest.mark.parametrize("limit", range(1, 11))
@pytest.mark.parametrize("client", [None, "x"])
def test_pages_go_on_in_bands_of_jobs_that_have_waited_for_their_time(redis, broker, readers, limit, client):
    for priority in (0, 5, -5):
        delayed = [scheduled_job(broker, f"x{priority}+", client="x", priority=priority)]
        delayed += [scheduled_job(broker, f"y{priority}+", client="y", priority=priority)]
        let_fall_due(broker, *delayed)
        broker.redis.execute_one(SCRIPTS["promote"].call(broker.keys.of(QUEUE), (100, "1")))
        queue_up(broker, f"x{priority}", f"y{priority}", priority=priority)

    taken = pages(readers, limit, client=client)

    in_order = [f"{who}{band}" for band in ("5+", "5", "0+", "0", "-5+", "-5") for who in (client or "xy")]
    assert [name for names_of_page in taken for name in names_of_page] == in_order


def test_a_client_that_comes_before_all_others_is_no_end_of_the_list(redis, broker, readers):
    jobs = claimed_jobs(broker, *(new_job(name, client=name) for name in "xyz"))
    queue_up(broker, "v")
    settle(broker, "release", *jobs)

    assert [name for page in pages(readers, 1) for name in page] == ["x", "y", "z", "v"]


@pytest.mark.usefixtures("_many_jobs")
def test_those_of_one_client_are_found_without_looking_at_others(readers):
    found = readers.search([(QUEUE, "queued")], filter=Selection(client="x")).page()

    assert names(job.id for job in found.jobs) == ["x9", "x1", "x2", "x3"]
    assert found.searched == 4
    assert pages(readers, 3, client="x") == [["x9", "x1", "x2"], ["x3"]]
    assert pages(readers, 3, client="nobody") == [[]]


@pytest.mark.usefixtures("_many_jobs")
def test_jobs_that_are_claimed_meanwhile_move_nothing(broker, readers):
    first, cursor = page(readers, limit=4)
    assert first == ["y9", "x9", "x1", "x2"]
    claim(broker, 5)  # y9, x9, x1, y1, z1

    second, _ = page(readers, cursor)

    assert second == ["x3"]


def test_when_the_last_one_seen_is_gone_all_before_it_are_too(redis, broker, readers):
    queue_up(broker, "x1", "x2", "x3", "x4")
    _, cursor = page(readers, limit=2)
    claim(broker, 3)

    assert page(readers, cursor) == (["x4"], "")


def test_what_was_cancelled_is_not_shown(redis, broker, readers, access):
    ghost = queued_job(broker, "a")
    queued_job(broker, "b")
    access.cancel(ghost.id)

    assert page(readers) == (["b"], "")


@pytest.mark.usefixtures("_many_jobs")
def test_a_filter_looks_at_all_but_says_so_when_it_stops(readers):
    found = readers.search([(QUEUE, "queued")], filter=Selection(id="no such")).page(depth=3)

    assert (found.jobs, found.searched, found.is_complete) == ([], 3, False)
    rest = readers.search([(QUEUE, "queued")], filter=Selection(id="no such")).page(cursor=found.next_cursor)
    assert (rest.searched, rest.is_complete, rest.next_cursor) == (4, True, "")


NO_CURSORS = ["x", "W10", "bnVsbA", "é", "x:\ud800", encode_cursor([QUEUE, "queued"])[:-1], encode_cursor(1)]


@pytest.mark.parametrize("cursor", NO_CURSORS, ids=range(len(NO_CURSORS)))  # signatures depend on the time
@pytest.mark.usefixtures("_many_jobs")
def test_a_cursor_that_is_none_begins_at_the_beginning(readers, cursor):
    assert page(readers, cursor, 1)[0] == ["y9"]


def test_a_cursor_is_the_same_at_any_time(monkeypatch):
    cursor = encode_cursor([QUEUE, "queued"])
    monkeypatch.setattr("time.time", lambda: 1_900_000_000.0)
    assert encode_cursor([QUEUE, "queued"]) == cursor


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_clients_with_weights_and_blocked_clients_are_paged(broker, readers, limit, rtq):
    rtq.clients["x"].limit(QUEUE, weight=3)
    queue_up(broker, *(f"{client}{number}" for client in "axyz" for number in range(9)))
    claim(broker, 3)
    claim(broker, 2)
    rtq.queues[QUEUE].limit_clients(max_running=1)
    claim(broker, 9)  # blocks them
    rtq.clients["y"].limit(QUEUE, max_running=None)
    claim(broker, 1)

    (everything,) = pages(readers, 50)

    assert [name for found in pages(readers, limit) for name in found] == everything
    assert {name[0] for name in everything} == set("axyz")


def test_more_empty_lanes_than_are_looked_at_in_one_call_are_passed_over(redis, broker, readers):
    for number in range(450):
        queued_job(broker, client=f"gone-{number:03}")
    for key in redis.keys("*:lane:*"):
        redis.delete(key)  # as a torn log may leave the rings
    queue_up(broker, "x1")

    assert page(readers) == (["x1"], "")


def test_a_very_long_lane_is_followed_to_its_end(redis, broker, readers):
    queue_up(broker, "x1", "y1")
    lane = broker.keys.of(QUEUE).lane + b"0:x"
    redis.rpush(lane, *(f"job-{number}" for number in range(12_000)))

    found = readers.search([(QUEUE, "queued")], filter=Selection(id="no such")).page(depth=11_000)

    assert (found.searched, found.is_complete) == (11_000, False)
    redis.lpop(lane, 1500)  # claimed meanwhile
    rest = readers.search([(QUEUE, "queued")], filter=Selection(id="no such")).page(cursor=found.next_cursor)
    assert (rest.searched, rest.is_complete, rest.next_cursor) == (1002, True, "")


def test_pages_of_a_long_lane_go_on_behind_jobs_that_were_put_back(redis, broker, readers):
    claimed = claimed_jobs(broker, *(new_job(f"x{number}", client="x") for number in range(2)))
    queue_up(broker, *(f"x{number}" for number in range(2, 9)))
    first, cursor = page(readers, limit=3)
    settle(broker, "release", *claimed)

    assert page(readers, cursor)[0] == ["x5", "x6", "x7", "x8"]
    assert first == ["x2", "x3", "x4"]


@pytest.mark.parametrize("client", [None, "x"])
def test_jobs_of_blocked_clients_are_listed_where_nobody_else_has_jobs(broker, readers, client, rtq):
    jobs = [queued_job(broker, client="x", priority=priority) for priority in (5, 5, 0)]
    rtq.clients["x"].pause(QUEUE)
    assert claim(broker, 5) == []

    page = readers.search([(QUEUE, "queued")], filter=Selection(client=client)).page()

    assert [job.id for job in page.jobs] == [job.id for job in jobs]
