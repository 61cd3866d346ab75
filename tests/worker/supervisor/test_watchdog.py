"""Jobs that a process has claimed and cannot start are given back."""

from types import SimpleNamespace

import pytest

from django_rtq import signals
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.worker.shared_entries import ACKED, Mark
from django_rtq.worker.shared_memory import SharedState
from django_rtq.worker.supervisor.watchdog import LOOK_SECONDS, Watchdog
from tests.support.jobs import QUEUE, claimed_job, claimed_jobs, new_job
from tests.support.snapshots import place_of, snapshot

WORKER = "w1"


class Clock:
    """Time passes only when a test lets it. What happens in a sleep may be said."""

    def __init__(self):
        self.now, self.in_sleep = 1000.0, lambda: None

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.in_sleep()


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("django_rtq.worker.supervisor.watchdog.time", clock)
    return clock


@pytest.fixture
def page():
    page = SharedState(1)
    page.sign(WORKER)
    page.live(1000.0)
    return page


@pytest.fixture
def look(broker, page, clock):
    """Some looks of a watchdog, one after the other."""
    watchdog = Watchdog(broker, [QUEUE, "low"], lambda: [(4711, page)])

    def look(times=1):
        for _ in range(times):
            clock.now += LOOK_SECONDS
            watchdog.tick()

    return look


@pytest.fixture
def heard():
    """Which signals were sent."""
    found = []

    def released(*, job_ids, queue, **kwargs):
        found.append(("released", queue, job_ids))

    def reclaimed(*, job_ids, queue, worker, **kwargs):
        found.append(("reclaimed", queue, job_ids))

    signals.job_released.connect(released)
    signals.job_reclaimed.connect(reclaimed)
    yield found
    signals.job_released.disconnect(released)
    signals.job_reclaimed.disconnect(reclaimed)


@pytest.fixture
def batch(broker, page):
    """Four jobs of one claim: one is done, one runs, two wait."""
    jobs = claimed_jobs(broker, *[new_job(f"job-{n}") for n in range(4)], worker=WORKER)
    page.begin([job.id.encode() for job in jobs])
    page.start(0)
    page.finish(0, ACKED, 60_000, b'{"state":"succeeded"}')
    page.start(1)
    return jobs


def places(redis, jobs):
    return [place_of(redis, job).partition(":")[0] for job in jobs]


AS_CLAIMED, GIVEN_BACK = ["running"] * 4, ["finished", "running", "lane", "lane"]


def test_the_rest_of_a_batch_whose_job_runs_for_long_is_given_back(redis, look, page, batch, heard, caplog):
    look()
    assert places(redis, batch) == AS_CLAIMED
    look(3)

    assert places(redis, batch) == GIVEN_BACK
    assert heard == [("released", QUEUE, [job.id for job in batch[2:]])]
    assert caplog.text.count("2 jobs that were claimed with it are given back") == 1
    assert page.taken is Mark.REST
    assert not page.start(2)
    assert page.started() == [batch[1].id]


def test_nothing_is_given_back_while_other_jobs_start(redis, look, page, batch):
    look()
    page.finish(1, ACKED, 1)
    page.start(2)
    look()

    assert places(redis, batch) == AS_CLAIMED
    assert page.taken is Mark.NOTHING


@pytest.mark.parametrize("sign", ["told", "alive"])
def test_a_child_that_can_do_it_is_left_to_do_it_itself(redis, look, page, batch, clock, sign):
    look()
    page.give_back_from(2)
    for _ in range(3):
        page.live(clock.now)
        if sign == "told":
            page.note_told()
        look()

    assert places(redis, batch) == AS_CLAIMED
    assert page.taken is Mark.NOTHING


def test_what_a_child_was_about_to_give_back_is_given_back_for_it(redis, look, page, batch):
    page.give_back_from(2)
    look(2)

    assert places(redis, batch) == GIVEN_BACK


def test_what_started_in_the_last_moment_is_not_given_back(redis, look, page, batch, clock):
    def start():
        page.finish(1, ACKED, 60_000, b"1")
        page._memory[128 + 2] = 2  # its look at the mark was a moment before the mark

    clock.in_sleep = start
    look(2)

    assert places(redis, batch) == AS_CLAIMED


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_could_not_be_given_back_while_redis_was_away_is_given_back_later(redis, look, batch, moment):
    look()
    for _ in range(2):
        redis.drop_connection(moment)
        with pytest.raises(BrokerUnavailable):
            look()
    look()

    assert places(redis, batch) == GIVEN_BACK


def test_a_mark_is_taken_away_when_the_child_has_claimed_anew(look, page, batch):
    look(2)
    page.begin([b"next"])
    assert page.is_marked
    look()

    assert not page.is_marked


# -- frozen


@pytest.fixture
def leases(broker):
    """How many looks it takes until so many leases are over."""
    return lambda number: int(number * broker.config.lease_seconds / LOOK_SECONDS) + 2


@pytest.fixture
def idle(broker):
    """A job that was claimed for a child that does not know of it."""
    return claimed_job(broker, worker=WORKER)


def test_what_a_frozen_child_has_claimed_is_given_back_and_it_is_a_worker_no_more(
    redis, look, page, idle, leases, heard, caplog
):
    look(leases(0.8))
    assert place_of(redis, idle) == f"running:{WORKER}"
    look(leases(0.4))

    assert place_of(redis, idle) == "lane:0:"
    assert redis.zscore("{rtq:default}:workers", WORKER) is None
    assert heard == [("reclaimed", QUEUE, [idle.id])]
    assert redis.hlen("{rtq:default}:crashes") == 0
    assert page.taken is Mark.ALL
    before = snapshot(redis)
    look(leases(2))
    assert snapshot(redis) == before
    assert caplog.text.count("shows no sign of life") == 1


def test_what_it_had_finished_is_settled(redis, look, page, batch, leases):
    page.finish(1, ACKED, 60_000, b'{"state":"succeeded"}')
    look(leases(1.5))

    assert places(redis, batch) == ["finished", "finished", "lane", "lane"]


def test_it_may_go_on_under_a_new_name(redis, look, page, idle, leases):
    look(leases(1.5))
    page.begin([idle.id.encode()])
    assert not page.start(0)
    page.sign("w2")
    look()

    assert page.taken is Mark.NOTHING
    assert not page.is_marked
    page.begin([b"other"])
    assert page.start(0)


@pytest.mark.parametrize(
    "live",
    [
        lambda page, clock: page.live(clock.now),
        lambda page, clock: page.live(float("inf")),
        lambda page, clock: page.note(jobs_done=1, claimed_at=clock.now),
        lambda page, clock: page.begin([b"job"]) or page.start(0),
    ],
    ids=["waits", "leaves", "claims", "runs"],
)
def test_who_shows_life_or_leaves_or_runs_a_job_is_not_frozen(redis, look, page, clock, idle, leases, live):
    for _ in range(leases(3)):
        live(page, clock)
        look()

    assert place_of(redis, idle) == f"running:{WORKER}"


def test_a_child_without_a_name_is_not_frozen(broker, clock):
    watchdog = Watchdog(broker, [QUEUE], lambda: [(4711, SharedState(1))])
    for _ in range(100):
        clock.now += 1
        watchdog.tick()


def test_who_was_stopped_together_with_its_supervisor_is_not_frozen(redis, look, page, clock, idle):
    look(2)
    clock.now += 1000
    look()
    page.live(clock.now)
    look(2)

    assert place_of(redis, idle) == f"running:{WORKER}"


def test_who_shows_life_in_the_last_moment_is_not_frozen(redis, look, page, clock, idle, leases):
    clock.in_sleep = lambda: page.live(clock.now)
    look(leases(1.5))

    assert place_of(redis, idle) == f"running:{WORKER}"
    assert page.taken is Mark.NOTHING


def test_a_child_that_waits_for_a_redis_that_hangs_is_not_frozen(redis, broker, page, clock, leases, idle):
    """The supervisor hears of Redis again a moment before its child does."""
    attempts = broker.attempts

    def answer_at_last(*arguments):
        page.live(clock.now)
        return attempts(*arguments)

    fake = SimpleNamespace(config=broker.config, attempts=answer_at_last)
    watchdog = Watchdog(fake, [QUEUE], lambda: [(4711, page)])
    for _ in range(leases(1.5)):
        clock.now += LOOK_SECONDS
        watchdog.tick()

    assert place_of(redis, idle) == f"running:{WORKER}"
