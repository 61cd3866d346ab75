"""Jobs of dead processes are taken back, and a stop waits for that as long as there is hope."""

import pytest

from django_rtq import signals
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.worker.shared_memory import Page
from django_rtq.worker.supervisor.crash_recovery import Bereavement
from django_rtq.worker.supervisor.supervisor import crash_recovery as module
from tests.conftest import wait_until
from tests.management.commands import body
from tests.seeds import QUEUE, WORKER, claimed_job
from tests.snapshots import place_of


@pytest.fixture
def page():
    page = Page(1)
    page.sign(WORKER)
    return page


@pytest.fixture
def woken():
    """How often the main thread was woken."""
    return []


@pytest.fixture
def bereavement(broker, woken):
    bereavement = Bereavement(broker, [QUEUE, "low"], lambda: woken.append(True))
    yield bereavement
    bereavement.stop()


def crashes(redis, job):
    return int(redis.hget(f"{{rtq:{QUEUE}}}:crashes", job.id) or 0)


def test_a_tick_takes_back_what_was_added_and_wakes_the_main_thread(redis, broker, bereavement, page, woken):
    job = claimed_job(broker)
    assert not bereavement.is_pending
    bereavement.add(page, guilty=[job.id])
    assert bereavement.is_pending
    bereavement.tick()

    assert (place_of(redis, job), crashes(redis, job)) == ("lane:0:", 1)
    assert not bereavement.is_pending
    assert woken


def test_a_child_that_never_had_a_name_leaves_nothing(bereavement):
    bereavement.add(Page(1), guilty=[])

    assert not bereavement.is_pending


def test_what_is_added_is_taken_back_at_once_in_its_own_thread(redis, broker, bereavement, page):
    job = claimed_job(broker)
    bereavement.start()
    wait_until(lambda: bereavement.answered_at > 0)
    bereavement.add(page, guilty=[])

    wait_until(lambda: not bereavement.is_pending)
    assert (place_of(redis, job), crashes(redis, job)) == ("lane:0:", 0)


def test_while_redis_is_away_there_is_no_hope_and_afterwards_there_is(redis, broker, bereavement, page, caplog):
    job = claimed_job(broker)
    bereavement.add(page, guilty=[])
    for _ in range(2):
        redis.answer_once(b"-LOADING for a while\r\n")
        with pytest.raises(BrokerUnavailable):
            bereavement.tick()
        assert not bereavement.is_pending
    bereavement.tick()

    assert place_of(redis, job) == "lane:0:"
    assert caplog.text.count("taken back when Redis answers") == 1
    bereavement.add(page, guilty=[])
    assert bereavement.is_pending


def test_a_redis_that_hangs_is_given_up(broker, bereavement, page, monkeypatch):
    claimed_job(broker)
    monkeypatch.setattr(module, "HOPE_SECONDS", 0.0)
    bereavement.add(page, guilty=[])

    assert not bereavement.is_pending


def test_signals_are_sent_when_all_is_taken_back(redis, broker, bereavement, page):
    """A receiver that takes its time holds up no job."""
    jobs, pages = [claimed_job(broker), claimed_job(broker, worker="w2")], [page, Page(1)]
    pages[1].sign("w2")
    seen = []

    def look(**kwargs):
        seen.append([place_of(redis, job) for job in jobs])

    signals.job_reclaimed.connect(look)
    try:
        for each in pages:
            bereavement.add(each, guilty=[])
        bereavement.tick()
    finally:
        signals.job_reclaimed.disconnect(look)

    assert seen == [["lane:0:", "lane:0:"]] * 2


def test_an_estate_that_cannot_be_settled_as_it_should_holds_up_no_other(redis, broker, bereavement, page, monkeypatch):
    job, other = claimed_job(broker, body=body("tests.app.tasks.note")), claimed_job(broker, worker="w2")
    second = Page(1)
    second.sign("w2")

    def fail(*args, **kwargs):
        raise ZeroDivisionError("the task's backoff")

    monkeypatch.setattr(module, "decide", fail)
    bereavement.add(page, guilty=[], overdue=[job.id])
    bereavement.add(second, guilty=[])
    bereavement.tick()

    assert (place_of(redis, job), crashes(redis, job)) == ("lane:0:", 1)
    assert place_of(redis, other) == "lane:0:"
