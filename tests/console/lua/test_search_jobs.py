"""Searches inside Redis: over all states, by a text, in steps."""

from datetime import date
from decimal import Decimal

import pytest

from django_rtq.console.reading.jobs.walk import JobWalk
from django_rtq.console.reading.selection import LISTS, Selection
from django_rtq.core.jobs import serializer
from tests.support.jobs import (
    QUEUE,
    SEEDS,
    claimed_job,
    dead_job,
    names,
    new_job,
    queued_job,
    read_all,
    scheduled_job,
    settle,
)
from tests.support.redis_server import LEASE_SECONDS


def body(*args, task="shop.ship", **kwargs):
    return serializer.dumps({"task": task, "args": list(args), "kwargs": kwargs})


def found(readers, state="queued", **wanted):
    return names(job.id for job in readers.search([(QUEUE, state)], filter=Selection(**wanted)).page().jobs)


@pytest.mark.parametrize("state", sorted(SEEDS.keys() - {"finished"}))
def test_the_jobs_of_each_state_are_found_page_by_page_in_the_order_of_their_list(redis, broker, readers, state):
    for number in range(12):
        SEEDS[state](broker, body=body(number, parity="odd" if number % 2 else "even"), client=f"c{number % 3}")
    in_order = [job.id for job in readers.search([(QUEUE, state)]).page().jobs if job.kwargs["parity"] == "odd"]

    pages, ids = read_all(lambda cursor: readers.search([(QUEUE, state)], filter=Selection(text="odd")).page(cursor, 2))

    assert ids == in_order
    assert [len(page.jobs) for page in pages[:3]] == [2, 2, 2]


def test_a_running_job_that_is_found_has_its_worker(redis, broker, readers):
    claimed_job(broker, body=body(7), worker="w1")

    (job,) = readers.search([(QUEUE, "running")], filter=Selection(task="ship")).page().jobs

    assert (job.worker, job.attempt) == ("w1", 1)
    assert abs(job.claimed_at.timestamp() - redis.time()[0]) < 5
    assert 0 < job.lease_left_seconds <= LEASE_SECONDS


def test_finished_jobs_are_found_by_task_state_and_text(broker, readers, access):
    job = claimed_job(broker, "done", body=body(7))
    settle(broker, "ack", job, outcome='{"state":"succeeded","task":"shop.ship","attempt":1,"result":[1]}')
    gone = queued_job(broker, "gone", body=body(7))
    access.cancel(gone.id)

    assert found(readers, "finished", task="ship") == ["done", "gone"][::-1]
    assert found(readers, "finished", outcome="cancelled") == ["gone"]
    assert JobWalk(broker, [(QUEUE, "finished")], Selection(outcome="succeeded")).count("", 10)[0] == {QUEUE: 1}
    assert found(readers, "finished", task="mail") == []
    assert found(readers, "finished", text="shop.sh") == ["gone", "done"]


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        ("Ann", "args kwargs nested client"),
        ("12345678", "kwargs"),  # not 42: ids have such digits, too
        ("shop.sh", "args kwargs client"),
        ('say "', "args"),
        ("\nline", "args"),
        ('An"na', "quoted"),
        ("builtins.Val", "dead"),
        ("no stock", "dead"),
        ('"task"', ""),  # a name in the record, no value
        ('Ann "O\'Hara"', "nested"),
        ("ß-1", "nested"),
        ("12.50", "nested"),
        ("2026-01-31", "nested"),
        ("null", "nested"),
    ],
)
def test_a_text_is_found_in_all_that_a_list_shows(broker, readers, wanted, where):
    line = serializer.dumps({"error_class": "builtins.ValueError", "error": "no stock"})
    job = dead_job(broker, "dead", body=body(task="shop.mail"))
    broker.redis.execute_one(("HSET", broker.keys.of(QUEUE).errors, job.id, line))
    queued_job(broker, "args", body=body('Ann: say "hello"\nline'))
    queued_job(broker, "kwargs", body=body(who={"Ann": 12345678}))
    queued_job(broker, "client", body=body(), client="Anna")
    queued_job(broker, "quoted", body=body(task="shop.mail"), client='An"na')
    order = {"lines": [{"sku": "ß-1"}, 5], "price": Decimal("12.50"), "day": date(2026, 1, 31), "note": None}
    queued_job(broker, "nested", body=body({"user": 'Ann "O\'Hara"'}, task="shop.mail", order=order))

    assert found(readers, text=wanted) + found(readers, "dead", text=wanted) == where.split()


def test_many_lists_are_searched_together_and_page_by_page(redis, broker):
    for queue in ("a", "b"):
        for state in ("running", "scheduled", "queued"):
            for number in range(3):
                SEEDS[state](broker, f"{queue}-{state}-{number}", queue=queue, body=body(number))
    lists = [(queue, state) for state in LISTS for queue in ("a", "b", "none")]
    search = JobWalk(broker, lists, Selection(task="ship"), sizes=dict.fromkeys(lists, 3))

    everything = search.page(limit=100)
    pages, ids = read_all(lambda cursor: search.page(cursor, limit=4))

    assert (len(everything.jobs), everything.searched, everything.is_complete) == (18, 18, True)
    assert ids == [job.id for job in everything.jobs]
    assert [(job.queue, job.state) for page in pages for job in page.jobs] == [
        (queue, state) for state in ("queued", "scheduled", "running") for queue in "ab" for _ in range(3)
    ]


def test_a_search_that_ends_at_its_depth_goes_on_from_there(redis, broker):
    broker.enqueue(QUEUE, [new_job(body=body(f"order {number}")) for number in range(1200)])
    lists = [(QUEUE, "dead"), (QUEUE, "queued"), (QUEUE, "finished")]
    search = JobWalk(broker, lists, Selection(text="order 1199"))

    first = search.page(depth=700)
    second = search.page(first.next_cursor)

    assert (first.jobs, first.searched, first.is_complete) == ([], 700, False)
    assert ([job.args for job in second.jobs], second.searched, second.is_complete) == ([["order 1199"]], 500, True)


def test_a_step_of_a_long_list_does_not_search_the_lists_behind_it(redis, broker, monkeypatch):
    broker.enqueue(QUEUE, [new_job(body=body(number)) for number in range(600)])
    lists = [(QUEUE, "queued"), (QUEUE, "scheduled"), ("other", "queued"), ("other", "scheduled")]
    sizes = {**dict.fromkeys(lists, 0), (QUEUE, "queued"): 600}
    search, calls = JobWalk(broker, lists, Selection(task="mail"), sizes=sizes), []
    execute = broker.redis.execute
    monkeypatch.setattr(
        broker.redis, "execute", lambda sent, **options: calls.append(len(sent)) or execute(sent, **options)
    )

    page = search.page()

    assert (page.searched, page.is_complete) == (600, True)
    assert calls[:3] == [1, 1, 1]


def test_times_are_those_of_the_list(redis, broker, readers):
    job = dead_job(broker, "old", body=body())
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: 1000})
    dead = dead_job(broker, "new", body=body())
    died_at = readers.find(dead.id).died_at

    assert found(readers, "dead", since=died_at) == ["new"]
    assert found(readers, "dead", before=readers.find(job.id).died_at) == ["old"]


def test_a_state_that_has_no_list_is_refused(broker):
    with pytest.raises(ValueError, match=r"'lost' is not one of queued, scheduled, "):
        JobWalk(broker, [(QUEUE, "lost")]).page()


def test_what_a_torn_log_left_in_the_index_of_a_client_is_not_found(redis, broker, readers):
    job, gone = scheduled_job(broker, client="acme"), scheduled_job(broker, client="acme")
    redis.zrem(broker.keys.of(QUEUE).scheduled, gone.id)

    assert found(readers, "scheduled", client="acme") == names([job.id])
