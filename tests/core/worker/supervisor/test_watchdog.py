"""Jobs that a process has claimed and cannot start are given back."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from django_rtq import signals
from django_rtq.core.worker.shared_memory import _STATUS, ACKED, Revoked, SharedState
from django_rtq.core.worker.supervisor.watchdog import ALIVE_CHECK_SECONDS, CHECK_SECONDS, Watchdog
from django_rtq.exceptions import BrokerUnavailable
from tests.core.worker.clocks import Clock
from tests.support.jobs import QUEUE, claimed_job, claimed_jobs, new_job, receiving
from tests.support.snapshots import place_of, snapshot

WORKER = "w1"


class SleepingClock(Clock):
    """What happens in a sleep may be said."""

    in_sleep = staticmethod(lambda: None)

    def sleep(self, seconds):
        self.in_sleep()


@pytest.fixture
def clock(monkeypatch):
    clock = SleepingClock()
    monkeypatch.setattr("django_rtq.core.worker.supervisor.watchdog.time", clock)
    return clock


@pytest.fixture
def shared():
    shared = SharedState(1)
    shared.set_name(WORKER)
    shared.set_alive(1000.0)
    return shared


@pytest.fixture
def look(broker, shared, clock):
    """Some looks of a watchdog, one after the other."""
    watchdog = Watchdog(broker, [QUEUE, "low"], lambda: [(4711, shared)])

    def look(times=1):
        for _ in range(times):
            clock.now += CHECK_SECONDS
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

    with receiving(released, signals.job_released), receiving(reclaimed, signals.job_reclaimed):
        yield found


@pytest.fixture
def batch(broker, shared):
    """Four jobs of one claim: one is done, one runs, two wait."""
    jobs = claimed_jobs(broker, *[new_job(f"job-{n}") for n in range(4)], worker=WORKER)
    shared.start_batch([job.id.encode() for job in jobs])
    shared.start(0)
    shared.finish(0, ACKED, 60_000, b'{"state":"succeeded"}')
    shared.start(1)
    return jobs


def places(redis, jobs):
    return [place_of(redis, job).partition(":")[0] for job in jobs]


AS_CLAIMED, GIVEN_BACK = ["running"] * 4, ["finished", "running", "lane", "lane"]


def test_the_rest_of_a_batch_whose_job_runs_for_long_is_given_back(redis, look, shared, batch, heard, caplog):
    look()
    assert places(redis, batch) == AS_CLAIMED
    look(3)

    assert places(redis, batch) == GIVEN_BACK
    assert heard == [("released", QUEUE, [job.id for job in batch[2:]])]
    assert caplog.text.count("jobs that were claimed with it and are given back: 2") == 1
    assert shared.revoked is Revoked.REST
    assert not shared.start(2)
    assert shared.running() == [batch[1].id]


def test_nothing_is_given_back_while_other_jobs_start(redis, look, shared, batch):
    look()
    shared.finish(1, ACKED, 1)
    shared.start(2)
    look()

    assert places(redis, batch) == AS_CLAIMED
    assert shared.revoked is Revoked.NOTHING


@pytest.mark.parametrize("sign", ["told", "alive"])
def test_a_child_that_can_do_it_is_left_to_do_it_itself(redis, look, shared, batch, clock, sign):
    look()
    shared.release_from(2)
    for _ in range(3):
        shared.set_alive(clock.now)
        if sign == "told":
            shared.mark_reported()
        look()

    assert places(redis, batch) == AS_CLAIMED
    assert shared.revoked is Revoked.NOTHING


def test_what_a_child_was_about_to_give_back_is_given_back_for_it(redis, look, shared, batch):
    shared.release_from(2)
    look(2)

    assert places(redis, batch) == GIVEN_BACK


def test_what_started_in_the_last_moment_is_not_given_back(redis, look, shared, batch, clock):
    def start():
        shared.finish(1, ACKED, 60_000, b"1")
        shared._memory[_STATUS + 2] = 2  # its look at the mark was a moment before the mark

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


def test_a_mark_is_taken_away_when_the_child_has_claimed_anew(look, shared, batch):
    look(2)
    shared.start_batch([b"next"])
    assert shared.has_revocation
    look()

    assert not shared.has_revocation


@pytest.fixture
def ahead(broker, shared, look):
    """A process with slots: one job runs, another one was claimed ahead."""
    shared.__init__(2)
    shared.set_name(WORKER)
    jobs = claimed_jobs(broker, new_job("runs"), new_job("waits"), worker=WORKER)
    running, _ = [shared.add_entry(job.id.encode()) for job in jobs]
    shared.start(running)
    return jobs


def test_what_was_claimed_ahead_is_given_back_and_no_revocation_stays(redis, look, shared, ahead):
    look(3)
    assert places(redis, ahead) == ["running", "lane"]
    shared.end_claim()  # the process drops it
    assert shared.has_revocation
    look()
    assert not shared.has_revocation


def test_a_revocation_stays_as_long_as_redis_may_still_give_back_a_job_of_that_name(redis, look, shared, ahead):
    look()
    redis.drop_connection("before")
    with pytest.raises(BrokerUnavailable):
        look()
    shared.end_claim()
    look()
    assert shared.has_revocation
    shared.set_name("w2")
    look()
    assert not shared.has_revocation


# -- frozen


@pytest.fixture
def leases(broker):
    """How many looks it takes until so many leases are over."""
    return lambda number: int(number * broker.config.lease_seconds / CHECK_SECONDS) + 2


@pytest.fixture
def idle(broker):
    """A job that was claimed for a child that does not know of it."""
    return claimed_job(broker, worker=WORKER)


def test_what_a_frozen_child_has_claimed_is_given_back_and_it_is_a_worker_no_more(
    redis, look, shared, idle, leases, heard, caplog
):
    look(leases(0.8))
    assert place_of(redis, idle) == f"running:{WORKER}"
    look(leases(0.4))

    assert place_of(redis, idle) == "lane:0:"
    assert redis.zscore("{rtq:default}:workers", WORKER) is None
    assert heard == [("reclaimed", QUEUE, [idle.id])]
    assert redis.hlen("{rtq:default}:crashes") == 0
    assert shared.revoked is Revoked.ALL
    before = snapshot(redis)
    look(leases(2))
    assert snapshot(redis) == before
    assert caplog.text.count("is frozen: no sign of life") == 1


def test_what_it_had_finished_is_settled(redis, look, shared, batch, leases):
    shared.finish(1, ACKED, 60_000, b'{"state":"succeeded"}')
    look(leases(1.5))

    assert places(redis, batch) == ["finished", "finished", "lane", "lane"]


def test_it_may_go_on_under_a_new_name(redis, look, shared, idle, leases):
    look(leases(1.5))
    shared.start_batch([idle.id.encode()])
    assert not shared.start(0)
    shared.set_name("w2")
    look()

    assert shared.revoked is Revoked.NOTHING
    assert not shared.has_revocation
    shared.start_batch([b"other"])
    assert shared.start(0)


@pytest.mark.parametrize(
    "live",
    [
        lambda shared, clock: shared.set_alive(clock.now),
        lambda shared, clock: shared.set_alive(float("inf")),
        lambda shared, clock: shared.record_claim(jobs_done=1, claimed_at=clock.now),
        lambda shared, clock: shared.start_batch([b"job"]) or shared.start(0),
    ],
    ids=["waits", "leaves", "claims", "runs"],
)
def test_who_shows_life_or_leaves_or_runs_a_job_is_not_frozen(redis, look, shared, clock, idle, leases, live):
    for _ in range(leases(3)):
        live(shared, clock)
        look()

    assert place_of(redis, idle) == f"running:{WORKER}"


def test_a_child_without_a_name_is_not_frozen(broker, clock):
    watchdog = Watchdog(broker, [QUEUE], lambda: [(4711, SharedState(1))])
    for _ in range(100):
        clock.now += 1
        watchdog.tick()


def test_who_was_stopped_together_with_its_supervisor_is_not_frozen(redis, look, shared, clock, idle):
    look(2)
    clock.now += 1000
    look()
    shared.set_alive(clock.now)
    look(2)

    assert place_of(redis, idle) == f"running:{WORKER}"


def test_who_shows_life_in_the_last_moment_is_not_frozen(redis, look, shared, clock, idle, leases):
    clock.in_sleep = lambda: shared.set_alive(clock.now)
    look(leases(1.5))

    assert place_of(redis, idle) == f"running:{WORKER}"
    assert shared.revoked is Revoked.NOTHING


def test_a_child_that_waits_for_a_redis_that_hangs_is_not_frozen(redis, broker, shared, clock, leases, idle):
    """The supervisor hears of Redis again a moment before its child does."""
    attempts = broker.attempts

    def answer_at_last(*arguments):
        shared.set_alive(clock.now)
        return attempts(*arguments)

    fake = SimpleNamespace(config=broker.config, attempts=answer_at_last)
    watchdog = Watchdog(fake, [QUEUE], lambda: [(4711, shared)])
    for _ in range(leases(1.5)):
        clock.now += CHECK_SECONDS
        watchdog.tick()

    assert place_of(redis, idle) == f"running:{WORKER}"


def test_checks_are_rare_while_no_job_runs(broker, shared, batch):
    watchdog = Watchdog(broker, [QUEUE], lambda: [(4711, shared)])
    assert watchdog.tick() == CHECK_SECONDS

    shared.finish(1, ACKED, 1)

    assert watchdog.tick() == ALIVE_CHECK_SECONDS < broker.config.lease_seconds * 0.4


def test_a_process_that_gives_no_sign_of_life_is_looked_at_more_often(broker, shared, clock, monkeypatch):
    monkeypatch.setattr(broker, "config", replace(broker.config, lease_seconds=15.0))
    watchdog, intervals = Watchdog(broker, [QUEUE], lambda: [(4711, shared)]), []
    for _ in range(4):  # it gives its last sign of life a moment after each look
        shared.set_alive(clock.now + 0.1)
        intervals.append(watchdog.tick())
        clock.now += intervals[-1]
    while shared.revoked is Revoked.NOTHING:
        intervals.append(watchdog.tick())
        clock.now += intervals[-1]

    assert intervals[:6] == [ALIVE_CHECK_SECONDS] * 5 + [15 / 8]
    assert set(intervals[6:]) == {15 / 8}
    assert 15 < clock.now - shared.alive_at < 15 + 3 * 15 / 8


def test_a_job_that_starts_wakes_it(broker, shared, batch, monkeypatch):
    monkeypatch.setattr(broker, "config", replace(broker.config, lease_seconds=15.0))
    watchdog, woken = Watchdog(broker, [QUEUE], lambda: [(4711, shared)]), []
    watchdog.interrupt = lambda: woken.append(watchdog.interval)
    watchdog.tick()
    watchdog.wake_if_busy()  # it checks often anyway
    shared.finish(1, ACKED, 1)
    watchdog.tick()
    watchdog.wake_if_busy()  # nothing runs
    assert woken == []

    shared.start(2)
    watchdog.wake_if_busy()

    assert woken == [ALIVE_CHECK_SECONDS]
