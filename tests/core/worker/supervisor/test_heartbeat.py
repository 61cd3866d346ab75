"""The heartbeat of a supervisor: leases are renewed, and expired ones noticed."""

import os
import time
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

import django_rtq
from django_rtq import signals
from django_rtq.core.broker.worker_broker import TENDED_IN_A_LEASE, WorkerBroker
from django_rtq.core.conf.config import get_config
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.core.worker.supervisor.heartbeat import START_SECONDS, Heartbeat
from django_rtq.exceptions import BrokerFull, BrokerRefused, BrokerUnavailable
from tests.support.apps import look, needs, readers_of
from tests.support.jobs import (
    QUEUE,
    WORKER,
    asked_job,
    claimed_job,
    claimed_jobs,
    let_fall_due,
    let_lapse,
    new_job,
    queued_job,
    receiving,
    scheduled_job,
)
from tests.support.snapshots import place_of
from tests.support.waiting import server_ms


@pytest.fixture
def shared():
    shared = SharedState(1)
    shared.set_name("ours")
    shared.record_claim(jobs_done=3, claimed_at=1.0)
    return shared


@pytest.fixture
def heartbeat(broker, shared):
    return Heartbeat(broker, [QUEUE, "low"], lambda: [(4711, shared)], promotes=True)


@pytest.fixture
def reclaimed():
    """What was said to be taken back."""
    found = []
    with receiving(lambda job_ids, buried_ids, **_: found.append((job_ids, buried_ids)), signals.job_reclaimed):
        yield found


def outage_is_long_over(redis):
    for queue in (QUEUE, "low"):
        redis.hdel(f"{{rtq:{queue}}}:clock", "hold")


def is_queued(redis, queue, job):
    return redis.lpos(f"{{rtq:{queue}}}:lane:0:", job.id) is not None


def nobody_has_tended_lately(redis):
    redis.hdel(f"{{rtq:{QUEUE}}}:clock", "tended")


def test_a_tick_moves_the_deadline_of_the_children_and_of_nobody_else(redis, broker, heartbeat):
    broker.sign_on([QUEUE, "low"], "ours")
    redis.zadd("{rtq:default}:workers", {"ours": 1, "theirs": 2})
    redis.hset("{rtq:default}:clock", "hold", 10**15)
    heartbeat.tick()

    deadlines = dict(redis.zrange("{rtq:default}:workers", 0, -1, withscores=True))
    assert deadlines[b"ours"] > 10**12
    assert deadlines[b"theirs"] == 2


@needs("console")
def test_a_tick_reports_the_version_of_the_project_if_it_has_one(redis, broker, shared, heartbeat):
    broker.sign_on([QUEUE, "low"], "ours")
    heartbeat.tick()
    assert b"project_version" not in redis.hgetall("rtq:worker:ours")
    assert not redis.keys("*versions") + redis.keys("*deploys")

    with override_settings(RTQ={**settings.RTQ, "VERSION": "1.2"}):
        named = WorkerBroker(get_config())
        for processes in ([], [(4711, shared)]):
            Heartbeat(named, [QUEUE, "low"], lambda found=processes: found, promotes=True).tick()
            assert redis.exists("{rtq:default}:deploys") == len(processes)
        named.close()

    assert redis.hgetall("rtq:worker:ours")[b"project_version"] == b"1.2"
    assert redis.hkeys("{rtq:default}:versions") == [b"1.2"]


def test_a_tick_leaves_a_note_for_people(redis, broker, heartbeat):
    broker.sign_on([QUEUE, "low"], "ours")
    heartbeat.tick()

    note = redis.hgetall("rtq:worker:ours")
    assert (note[b"pid"], note[b"jobs_done"], note[b"queues"]) == (b"4711", b"3", b"default,low")
    assert (note[b"slots"], note[b"version"].decode()) == (b"1", django_rtq.__version__)
    assert int(note[b"up_seconds"]) < 60
    assert 0 < redis.ttl("rtq:worker:ours") <= 3600


def test_a_process_that_takes_its_name_during_a_tick_is_not_left_to_the_next_lease(broker, monkeypatch):
    starting, heartbeat_of = SharedState(1), broker.heartbeat

    def heartbeat(*args, **kwargs):
        starting.set_name("ours")
        return heartbeat_of(*args, **kwargs)

    monkeypatch.setattr(broker, "heartbeat", heartbeat)

    assert Heartbeat(broker, [QUEUE], lambda: [(4711, starting)], promotes=True).tick() == START_SECONDS


def test_a_tick_takes_back_the_jobs_of_those_whose_lease_ran_out(redis, broker, heartbeat, reclaimed):
    broker.sign_on([QUEUE, "low"], "ours")
    job = claimed_job(broker, worker="lost")
    let_lapse(broker, "lost")
    outage_is_long_over(redis)
    heartbeat.tick()

    assert place_of(redis, job) == "lane:0:"
    assert reclaimed == [([job.id], [])]


def test_a_job_that_was_to_stop_is_said_to_be_cancelled_when_it_is_taken_back(redis, broker, heartbeat, reclaimed):
    heard = []
    broker.sign_on([QUEUE, "low"], "ours")
    job = asked_job(broker, worker="lost")
    let_lapse(broker, "lost")
    outage_is_long_over(redis)
    with receiving(lambda job_id, queue, **_: heard.append((job_id, queue)), signals.job_cancelled):
        heartbeat.tick()

    assert heard == [(job.id, QUEUE)]
    assert reclaimed == []


@pytest.mark.parametrize(("lease", "interval"), [(15.0, 6.0), (60.0, 24.0), (10.0, 3.5), (3.0, 1.0)])
def test_leases_are_renewed_well_before_a_silence_is_an_outage(broker, monkeypatch, lease, interval):
    monkeypatch.setattr(broker, "config", replace(broker.config, lease_seconds=lease))
    heartbeat = Heartbeat(broker, [QUEUE], lambda: [], promotes=False)

    assert heartbeat.tick() == pytest.approx(interval)


def test_a_process_knows_that_its_lease_was_renewed(broker, heartbeat, shared):
    before = time.monotonic()
    heartbeat.tick()
    assert shared.renewed_at < 0  # nobody has signed on under its name

    broker.sign_on([QUEUE, "low"], "ours")
    heartbeat.tick()

    assert before <= shared.renewed_at <= time.monotonic()


def test_a_tick_comes_sooner_when_a_lease_is_about_to_run_out(redis, broker, heartbeat):
    broker.sign_on([QUEUE, "low"], "ours")
    usual = heartbeat.tick()
    redis.zadd("{rtq:default}:workers", {"theirs": server_ms(redis) + 10_000})
    nobody_has_tended_lately(redis)

    assert usual == pytest.approx(broker.config.lease_seconds * 2 / 5)
    assert 0 < heartbeat.tick() <= 10.01


@pytest.mark.parametrize("lease", [1, 2, 5, 12, 15, 16, 60, 3600])
def test_a_lone_supervisor_always_tends_and_of_others_one_does_within_half_a_lease(broker, lease):
    broker.config = replace(broker.config, lease_seconds=lease)
    interval, pause = Heartbeat(broker, [QUEUE], list, promotes=True)._interval, lease / TENDED_IN_A_LEASE

    assert interval > pause
    assert interval + pause < lease / 2  # a silence of half a lease counts as an outage


def test_what_is_left_to_take_back_does_not_wait_for_the_next_beat(redis, broker, heartbeat):
    broker.sign_on([QUEUE, "low"], "ours")
    claimed_jobs(broker, *(new_job() for _ in range(60)), worker="lost")
    let_lapse(broker, "lost")
    outage_is_long_over(redis)

    assert [heartbeat.tick() <= 0.01 for _ in range(3)] == [True, True, False]
    assert redis.llen("{rtq:default}:lane:0:") == 60


def test_jobs_of_a_worker_that_a_torn_log_has_lost_are_taken_back(redis, broker, heartbeat):
    broker.sign_on([QUEUE, "low"], "ours")
    job = claimed_job(broker, worker="lost")
    redis.zrem("{rtq:default}:workers", "lost")
    for _ in range(2):
        heartbeat.tick()
        nobody_has_tended_lately(redis)

    assert place_of(redis, job) == "lane:0:"


CHORES = ["keeping limits", "promotion and repairs"]  # in this order


@needs("limits")
def test_each_chore_is_tried(heartbeat):
    assert [name for name in heartbeat._chores if name in CHORES] == CHORES


ERRORS = {RuntimeError: "ERROR", BrokerFull: "ERROR", BrokerRefused: "ERROR", BrokerUnavailable: "WARNING"}


@pytest.mark.parametrize(("kind", "level"), ERRORS.items())
@pytest.mark.parametrize("failing", [*CHORES, "cancelling", "signing on", "reclaiming"])
def test_what_fails_stops_nothing_else_and_is_logged_once(
    redis, broker, heartbeat, shared, monkeypatch, caplog, failing, kind, level
):
    done = set()

    def fail(*args):
        raise kind("too slow")

    for name in ["cancelling", "signing on", *CHORES]:
        act = fail if name == failing else (lambda *args, name=name: done.add(name))
        if name in CHORES:
            monkeypatch.setitem(heartbeat._chores, name, act)
        else:
            attribute = {"cancelling": "_on_cancel_requests"}.get(name, "_update_stand_in")
            monkeypatch.setattr(heartbeat, attribute, act)
    reclaim = broker.reclaim
    if failing == "reclaiming":
        monkeypatch.setattr(broker, "reclaim", lambda queue: fail() if queue == QUEUE else reclaim(queue))
    broker.sign_on([QUEUE, "low"], "ours")
    jobs = {queue: claimed_job(broker, worker="lost", queue=queue) for queue in (QUEUE, "low")}
    for queue in jobs:
        let_lapse(broker, "lost", queue=queue)
    outage_is_long_over(redis)

    for _ in range(3):
        heartbeat.tick()

    assert shared.renewed_at > 0
    assert done == {"cancelling", "signing on", *CHORES} - {failing}
    assert is_queued(redis, "low", jobs["low"])
    assert is_queued(redis, QUEUE, jobs[QUEUE]) is (failing != "reclaiming")
    assert [record.levelname for record in caplog.records if "others go on" in record.getMessage()] == [level]


def test_what_failed_is_logged_again_when_it_had_succeeded(heartbeat, monkeypatch, caplog):
    answers = iter([1 / 2, 0, 1 / 2, 0, 0])
    monkeypatch.setitem(heartbeat._chores, "promotion and repairs", lambda *args: 1 / next(answers) > 9)
    for _ in range(5):
        heartbeat.tick()

    assert caplog.text.count("heartbeat (promotion and repairs) failed") == 2


def test_a_queue_that_cannot_be_promoted_keeps_no_other_from_it(redis, broker, heartbeat, caplog):
    broker.sign_on([QUEUE, "low"], "ours")
    job, due = scheduled_job(broker, queue="low"), scheduled_job(broker)
    redis.zadd(broker.keys.of("low").scheduled, {job.id: 1})
    let_fall_due(broker, due)
    redis.set(broker.keys.of(QUEUE).lanes, "another type")

    heartbeat.tick()

    assert is_queued(redis, "low", job)
    assert "heartbeat (promotion and repairs) failed" in caplog.text


@pytest.mark.parametrize("lease", [1, 2, 5, 12, 15, 60, 3600])
def test_chores_end_long_before_a_silence_is_an_outage(broker, lease):
    broker.config = replace(broker.config, lease_seconds=lease)
    heartbeat = Heartbeat(broker, [QUEUE], list, promotes=True)

    assert 0 < heartbeat._chore_seconds <= (lease / 2 - heartbeat._interval) / 2


def test_jobs_that_have_lost_their_place_are_queued_again_and_named(redis, broker, heartbeat, caplog):
    job, keys = queued_job(broker), broker.keys.of(QUEUE)
    redis.delete(keys.lane + b"0:")

    heartbeat.tick()

    assert redis.lrange(keys.lane + b"0:", 0, -1) == [job.id.encode()]
    assert f"queue {QUEUE}: jobs had lost their place" in caplog.text
    assert job.id in caplog.text
    heartbeat.tick()
    assert redis.llen(keys.lane + b"0:") == 1


def test_a_lost_job_that_was_asked_to_stop_is_told_to_be_cancelled(redis, broker, heartbeat):
    job, cancelled = asked_job(broker), []
    redis.delete(broker.keys.of(QUEUE).running(WORKER))

    with receiving(lambda job_id, queue, **_: cancelled.append((job_id, queue)), signals.job_cancelled):
        heartbeat.tick()

    assert cancelled == [(job.id, QUEUE)]


def test_where_lost_jobs_cannot_be_counted_one_call_looks_for_them(redis, broker, heartbeat, monkeypatch):
    queued_job(broker)
    redis.zadd(broker.keys.of(QUEUE).dead, {"no record": 1})
    calls = []
    monkeypatch.setattr(broker, "repair_jobs", lambda queue: calls.append(queue) or [])

    heartbeat.tick()

    assert calls == [QUEUE]


def test_while_processes_crash_before_they_run_a_job_the_supervisor_is_listed_and_says_so(redis, broker, readers):
    heartbeat = Heartbeat(
        broker, [QUEUE, "low"], list, promotes=False, supervisor_info=lambda: {"supervisor_name": "h:1:a"}
    )
    heartbeat.tell_crash_loop("was killed by SIGSEGV")
    for _ in range(2):
        heartbeat.tick()
        (worker,) = readers.workers([QUEUE])
        assert (worker.crash_loop, worker.slots, worker.pid) == ("was killed by SIGSEGV", 0, os.getpid())
        assert worker.queues == [QUEUE, "low"]
    (incident,) = [each for each in look(readers_of()).incidents if each.kind == "worker_crash_loop"]
    assert "was killed by SIGSEGV" in incident.text

    heartbeat.tell_crash_loop("")
    heartbeat.tick()
    assert readers.workers([QUEUE]) == []


def test_a_supervisor_that_stops_in_a_crash_loop_is_not_listed_any_more(redis, broker, readers):
    heartbeat = Heartbeat(broker, [QUEUE], list, promotes=False, supervisor_info=lambda: {"supervisor_name": "h:1:a"})
    heartbeat.tell_crash_loop("exited with code 70")
    heartbeat.tick()
    heartbeat.close()
    heartbeat.close()

    assert readers.workers([QUEUE]) == []


def test_a_supervisor_in_a_crash_loop_whose_lease_has_expired_signs_on_again(redis, broker, readers):
    heartbeat = Heartbeat(broker, [QUEUE], list, promotes=False, supervisor_info=lambda: {"supervisor_name": "h:1:a"})
    heartbeat.tell_crash_loop("exited with code 70")
    heartbeat.tick()
    (former,) = readers.workers([QUEUE])
    redis.zrem(f"{{rtq:{QUEUE}}}:workers", former.name)
    heartbeat.tick()
    heartbeat.tick()

    (worker,) = readers.workers([QUEUE])
    assert worker.name != former.name
