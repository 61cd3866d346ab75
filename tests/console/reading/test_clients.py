"""All clients over all queues: their figures, order, search and pages."""

import pytest

from django_rtq.console.reading import clients
from tests.console.lua.test_client_states import count_runs, shares
from tests.support.jobs import QUEUE, claim, claimed_job, queued_job, retrying_job, scheduled_job


def listed(readers, **selection):
    """The clients of a page, by name. Of each alone the same is told."""
    found = readers.clients.count()
    clients_by_name = {client.client: client for client in map(found.client, found.matching(**selection))}
    for name, client in clients_by_name.items():
        for each in client.in_queues:
            (alone,) = readers.clients.get(name, [each.queue])
            assert facts(alone) == facts(each)
    return clients_by_name


def facts(client):
    """What does not change with the time."""
    numbers = (client.queued, client.scheduled, client.running, client.is_blocked)
    return numbers, client.in_force, client.pause, client.holds.at_limit, client.holds.paused_by


def order(readers, sort, **selection):
    """The names of the list, in its order."""
    return [name.decode() for name in readers.clients.count().matching(sort=sort, **selection)]


def test_jobs_are_counted_over_all_queues_and_priorities(broker, readers):
    retrying_job(broker, client="x")
    for priority in (0, 0, 5):
        queued_job(broker, client="x", priority=priority)
    scheduled_job(broker, client="x", queue="low")
    queued_job(broker, client="x", queue="low")
    scheduled_job(broker, client="y")
    queued_job(broker)

    found = listed(readers)

    assert {name: (one.queued, one.scheduled) for name, one in found.items()} == {"x": (4, 2), "y": (0, 1), "": (1, 0)}
    assert 0 <= found["x"].oldest_seconds < 60
    assert found["y"].oldest_seconds is None
    assert shares(found["x"]) == (None, None, None)
    assert (found["x"].pause, found["x"].limits, found["x"].reasons) == (None, {}, [])


def test_many_clients_are_counted_in_steps(broker, readers):
    for start in range(3):
        for number in range(600):
            if number % 3 >= start:
                queued_job(broker, client=f"client{number}")
        scheduled_job(broker, client=f"client{start}")

    found = readers.clients.count()
    totals = [found.client(name) for name in found.matching()]

    assert (found.known, len(totals), found.is_complete) == (600, 600, True)
    assert [one.queued for one in totals] == [3] * 200 + [2] * 200 + [1] * 200
    assert sum(one.scheduled for one in totals) == 3


def test_limits_pauses_and_running_jobs_are_told(broker, readers, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    claimed_job(broker, client="x")
    queued_job(broker, client="x")
    queued_job(broker, client="y")
    claim(broker, 5)
    rtq.clients["y"].limit("low", max_running=7)
    rtq.clients["z"].pause("low", by="eve")
    queued_job(broker, client="z", queue="low")
    rtq.queues["low"].pause()

    found = listed(readers)

    assert found["x"].reasons == [f"{QUEUE}: at its limit of 1 running job"]
    assert [found[name].running for name in "xyz"] == [1, 1, 0]
    assert [bool(found[name].limits) for name in "xyz"] == [False, True, False]
    assert [bool(found[name].pause) for name in "xyz"] == [False, False, True]
    (reason,) = found["z"].reasons
    assert reason.startswith("low: paused by eve, ")
    assert "; the queue: paused " in reason


@pytest.mark.parametrize("own", ["none", "5"])
def test_its_own_limit_comes_before_that_of_each_client(broker, readers, own, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    rtq.clients["x"].limit(QUEUE, max_running=None if own == "none" else int(own))
    claimed_job(broker, client="x")
    queued_job(broker, client="x")

    assert listed(readers)["x"].reasons == []


@pytest.mark.parametrize("weight", [None, 3])
def test_shares_are_those_of_its_page(redis, broker, readers, weight, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    claimed_job(broker, client="blocked")
    queued_job(broker, client="blocked")
    assert claim(broker) == []
    queued_job(broker, client="waits")
    count_runs(redis, broker, 0, x=(30, 1), y=(10, 3))
    count_runs(redis, broker, 1, y=(600, 60), old=(600, 60))
    if weight:
        rtq.clients["x"].limit(QUEUE, weight=weight)

    found = listed(readers)
    state, alone = readers.clients.in_queue(QUEUE, sorted(found))

    assert sorted(found) == ["blocked", "old", "waits", "x", "y"]
    assert state.runs > 0
    for one in alone:
        for share, listed_share in zip(shares(one), shares(found[one.client]), strict=True):
            assert (listed_share or 0) == pytest.approx(share or 0, abs=0.01)


def test_over_all_queues_each_counts_by_what_it_ran(redis, broker, readers):
    for queue in (QUEUE, "low"):
        queued_job(broker, client="x", queue=queue)
    count_runs(redis, broker, 0, x=(30, 30), y=(10, 10))
    count_runs(redis, broker, 0, queue="low", x=(10, 60), y=(30, 0), z=(120, 0))

    x = listed(readers)["x"]

    assert x.starts == pytest.approx(40 / 200)
    assert x.time == pytest.approx(90 / 100)
    assert x.fair == pytest.approx((40 / 2 + 160 / 3) / 200)


@pytest.fixture
def three(redis, broker, keys, rtq):
    """Three clients, each of which is first in something."""
    rtq.queues[QUEUE].limit_clients(max_running=5)
    claimed_job(broker, client="Beta", worker="w1")
    for client, number in (("alpha", 1), ("Beta", 2), ("gamma", 3)):
        for _ in range(number):
            queued_job(broker, client=client)
    for _ in range(2):
        scheduled_job(broker, client="alpha")
    redis.zadd(keys.lanes, {"0:alpha": 3000, "0:Beta": 1000, "0:gamma": 2000})
    count_runs(redis, broker, 0, alpha=(5, 1), Beta=(2, 9), gamma=(1, 3))
    rtq.clients["gamma"].limit(QUEUE, weight=3)
    rtq.clients["idle"].pause(QUEUE)


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["alpha", "Beta", "gamma", "idle"]),
        ("queued", ["gamma", "Beta", "alpha", "idle"]),
        ("scheduled", ["alpha", "Beta", "gamma", "idle"]),
        ("running", ["Beta", "alpha", "gamma", "idle"]),
        ("oldest", ["Beta", "gamma", "alpha", "idle"]),
        ("starts", ["alpha", "Beta", "gamma", "idle"]),
        ("time", ["Beta", "gamma", "alpha", "idle"]),
        ("fair", ["gamma", "alpha", "Beta", "idle"]),
        ("nonsense", ["gamma", "Beta", "alpha", "idle"]),
        ("-name", ["idle", "gamma", "Beta", "alpha"]),
        ("-queued", ["idle", "alpha", "Beta", "gamma"]),
        ("-oldest", ["alpha", "gamma", "Beta", "idle"]),  # those without come last
    ],
)
def test_it_is_sorted_by_any_column(three, readers, sort, names):
    assert order(readers, sort.removeprefix("-"), is_reversed=sort.startswith("-")) == names


def test_it_is_searched_by_a_part_of_the_name_and_by_state(three, readers):
    assert order(readers, "name", search="MA") == ["gamma"]
    assert order(readers, "name", search="A") == ["alpha", "Beta", "gamma"]
    assert order(readers, "name", state="paused") == ["idle"]
    assert order(readers, "name", state="limited") == ["gamma"]
    assert order(readers, "name", state="waiting") == ["alpha", "Beta", "gamma"]
    assert order(readers, "name", state="waiting", search="idle") == []


def test_where_more_clients_wait_than_are_read_it_says_so(broker, readers, monkeypatch):
    monkeypatch.setattr(clients, "MAX_ENTRIES", 2)
    for client in "xyz":
        queued_job(broker, client=client)

    found = readers.clients.count()

    assert (found.matching(), found.is_complete) == ([b"x", b"y"], False)


def test_a_few_are_counted_anew_each_time(broker, readers):
    queued_job(broker, client="x")
    assert readers.clients.all().known == 1
    queued_job(broker, client="y")
    found = readers.clients.all()
    assert (found.known, found.age_seconds) == (2, 0.0)


def test_the_counts_of_many_are_kept_until_they_are_old(broker, readers, monkeypatch):
    monkeypatch.setattr(clients, "FEW", 1)
    for client in "xy":
        queued_job(broker, client=client)
    first = readers.clients.all()
    queued_job(broker, client="z")

    assert readers.clients.all() is first
    assert first.kept_seconds >= clients.KEPT_SECONDS
    assert first.age_seconds > 0
    first.read_at -= first.kept_seconds
    assert readers.clients.all().known == 3
