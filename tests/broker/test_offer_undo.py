"""For how long what was deleted can be put back: after the action, and after its undo has begun."""

import pytest

from django_rtq.inspector.jobs import undo
from tests.support import sweeps
from tests.support.jobs import QUEUE, dead_job
from tests.support.server_clock import server_ms
from tests.support.snapshots import snapshot

TOKEN = undo.new_token("discard")
HOUR, WEEK = 3_600_000, 7 * 86_400_000


@pytest.fixture
def discarded(broker, inspector):
    """120 dead letters that were discarded: restoring takes several steps."""
    jobs = [dead_job(broker) for _ in range(120)]
    inspector.discard(QUEUE, [job.id for job in jobs], undo=TOKEN)
    return jobs


@pytest.fixture
def ms_left(redis, broker):
    """For how long the list is kept, and what is known of it."""
    keys = broker.keys.of(QUEUE)
    return lambda: (redis.pttl(keys.undo + TOKEN.encode()), redis.pttl(keys.undos))


def test_while_the_action_goes_on_it_is_kept_for_an_hour(inspector, discarded, ms_left):
    assert all(HOUR - 60_000 < ms <= HOUR for ms in ms_left())

    aside = inspector.undos.read(QUEUE, TOKEN)

    assert (aside.jobs, aside.seconds, aside.can_be_undone) == (120, None, True)
    assert all(HOUR - 60_000 < ms <= HOUR for ms in ms_left())


def test_after_the_action_it_is_kept_for_as_long_as_the_button_is_shown(redis, inspector, discarded, ms_left):
    began = server_ms(redis)

    aside = inspector.undos.close(QUEUE, TOKEN)

    (of_list, of_index), passed = ms_left(), server_ms(redis) - began
    assert undo.OFFERED_SECONDS - passed / 1000 <= aside.seconds <= undo.OFFERED_SECONDS
    assert 40_000 - passed <= of_list <= 40_000
    assert of_index > HOUR - 60_000


def test_the_same_action_can_go_on_afterwards(broker, inspector, discarded, ms_left):
    inspector.undos.close(QUEUE, TOKEN)

    inspector.discard(QUEUE, [dead_job(broker).id], undo=TOKEN)

    assert all(HOUR - 60_000 < ms <= HOUR for ms in ms_left())
    assert inspector.undos.read(QUEUE, TOKEN).jobs == 121


def test_an_undo_that_has_begun_has_days(inspector, discarded, ms_left):
    inspector.undos.close(QUEUE, TOKEN)

    next(sweeps.steps(inspector, "restore", undo=TOKEN))

    assert all(WEEK - 60_000 < ms <= WEEK for ms in ms_left())
    assert inspector.undos.read(QUEUE, TOKEN) == undo.AsideJobs(jobs=70, seconds=None)


@pytest.mark.parametrize("what", ["close", "discard", "discard others"])
def test_nothing_shortens_the_time_of_an_undo_that_has_begun(broker, inspector, discarded, ms_left, what):
    next(sweeps.steps(inspector, "restore", undo=TOKEN))

    if what == "close":
        inspector.undos.close(QUEUE, TOKEN)
    else:
        token = TOKEN if what == "discard" else undo.new_token("discard")
        inspector.discard(QUEUE, [dead_job(broker).id], undo=token)

    assert all(WEEK - 60_000 < ms <= WEEK for ms in ms_left())


def test_of_nothing_there_is_nothing(redis, inspector):
    assert inspector.undos.close(QUEUE, TOKEN) == undo.AsideJobs()
    assert not inspector.undos.read(QUEUE, TOKEN).can_be_undone
    assert not snapshot(redis)


def test_what_was_given_up_says_so(broker, inspector, monkeypatch):
    monkeypatch.setattr(undo, "MOST_JOBS", 1)
    inspector.discard(QUEUE, [dead_job(broker).id, dead_job(broker).id], undo=TOKEN)

    aside = inspector.undos.close(QUEUE, TOKEN)

    assert (aside.jobs, aside.is_too_much, aside.can_be_undone) == (0, True, False)


def test_sent_twice_it_changes_nothing_more(redis, inspector, discarded, ms_left):
    began = server_ms(redis)
    inspector.undos.close(QUEUE, TOKEN)
    before = snapshot(redis)

    inspector.undos.close(QUEUE, TOKEN)

    assert snapshot(redis) == before
    left, passed = ms_left()[0], server_ms(redis) - began
    assert 40_000 - passed <= left <= 40_000
