"""Which incidents have opened and closed since the last view."""

import pytest

from django_rtq.console.incidents.watcher import INCIDENT_SECONDS, seconds_since_view, track_incidents
from tests.support.waiting import server_ms

GAP_MS = 500


@pytest.fixture
def view(broker):
    """A scheduler's view: what has opened and closed."""
    tokens = iter(range(1000))

    def look(seen_ms, *ids, token=None):
        token = token or f"t{next(tokens)}"
        return track_incidents(
            broker, {each: each.upper() for each in ids}, seen_ms=seen_ms, gap_ms=GAP_MS, token=token
        )

    return look


def test_an_incident_opens_with_the_second_view_and_closes_with_the_first_without_it(view):
    assert view(1000, "a") == ([], [])
    assert view(2000, "a", "b") == (["A"], [])
    assert view(3000, "a", "b") == (["B"], [])
    assert view(4000, "a", "b") == ([], [])
    assert view(5000, "b") == ([], ["A"])
    assert view(6000) == ([], ["B"])
    assert view(7000) == ([], [])


@pytest.mark.parametrize("seen_ms", [1500, 2000, 2499])
def test_a_view_of_another_scheduler_that_is_older_or_too_soon_changes_nothing(redis, broker, view, seen_ms):
    view(1000, "a")
    view(2000, "a")
    before = redis.hgetall(broker.keys.of("default").incidents)

    assert view(seen_ms) == view(seen_ms, "a", "b") == ([], [])
    assert redis.hgetall(broker.keys.of("default").incidents) == before


def test_nothing_is_kept_of_what_is_over_and_all_expires(redis, broker, view):
    key = broker.keys.of("default").incidents
    for seen_ms in (1000, 2000):
        view(seen_ms, "a", "b")
    view(3000)
    view(4000)

    assert redis.hkeys(key) == [b""]
    assert 0 < redis.ttl(key) <= INCIDENT_SECONDS


def test_the_age_of_the_last_view_is_known(redis, broker, view):
    assert seconds_since_view(broker) is None
    view(server_ms(redis) - 10_000, "a")
    assert 10 <= seconds_since_view(broker) < 100


def test_texts_may_have_any_character(broker):
    text = 'a "b"\n\x00 é'
    for place in (1, 2):
        answer = track_incidents(broker, {"kind\nqueue\n\n=\n": text}, seen_ms=place * 1000, gap_ms=1, token=str(place))
    assert answer == ([text], [])
