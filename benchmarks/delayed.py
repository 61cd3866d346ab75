"""Time: how late delayed jobs start, how fast a crowd gets through, and what waiting for the far future costs."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta, timezone
from typing import Any

from benchmarks import drain
from benchmarks.figures import Readings, percentile
from benchmarks.processes import cpu_seconds
from benchmarks.proxy import CountingProxy
from benchmarks.stage import MeasurementFailed, Stage

JOBS, FROM_MS, TO_MS = 200, 1000, 5000
CROWD, CROWD_SECONDS = 20_000, 3.0
BEHIND_MS = 10  # so much later than the crowd another client's job is due
FAR, SETTLE_SECONDS = 100_000, 6.0


def measure(stage: Stage, readings: Readings) -> None:
    """One round: jobs that are due one by one, a crowd that is due at once, and one job of another client behind it."""
    _measure_lateness(stage, readings)
    _measure_crowd(stage, readings)
    _measure_behind_crowd(stage, readings)
    if "drain.one_client" not in readings.rounds:
        from benchmarks.jobs import noop

        readings.add("drain.one_client", drain.drain(stage, noop)[0])
    readings.ratio("delayed.crowd_vs_drain", "delayed.crowd", "drain.one_client")


def _measure_lateness(stage: Stage, readings: Readings) -> None:
    from benchmarks.jobs import note_moment

    stage.clear()
    with stage.worker() as worker:
        note_moment.delay(1)
        stage.wait_until(lambda: stage.notes[1], "the worker runs jobs", worker)
        ahead_ns = time.time_ns() - time.monotonic_ns()  # jobs note the one clock, and are due by the other
        now_ms = time.time_ns() // 1_000_000
        dues = {slot: now_ms + random.randint(FROM_MS, TO_MS) for slot in range(2, 2 + JOBS)}
        for slot, due_ms in dues.items():
            note_moment.using(run_after=_moment(due_ms)).delay(slot)
        stage.wait_until(lambda: all(stage.notes[slot] for slot in dues), "all delayed jobs started", worker)
    late = [(stage.notes[slot] + ahead_ns) / 1e6 - due_ms for slot, due_ms in dues.items()]
    readings.add("delayed.p50", percentile(late, 50))
    readings.add("delayed.p99", percentile(late, 99))
    readings.add("delayed.early", sum(ms < 0 for ms in late))


def _measure_crowd(stage: Stage, readings: Readings) -> None:
    """Counted is from the moment at which all are due to the last one that was acknowledged."""
    from benchmarks.jobs import noop
    from django_rtq.broker.broker import get_broker

    stage.clear()
    key = get_broker().keys.of("default").jobs
    with stage.worker() as worker:
        due_ms = time.time_ns() // 1_000_000 + int(CROWD_SECONDS * 1000)
        _enqueue_crowd(noop, due_ms)
        while stage.redis.hlen(key):
            time.sleep(drain.LOOK_SECONDS / 2)
            if worker.poll() is not None or time.time_ns() / 1e6 > due_ms + 60_000:
                raise MeasurementFailed(f"The crowd did not get through.\n{stage.log()}")
        seconds = time.time_ns() / 1e9 - due_ms / 1000
    readings.add("delayed.crowd", CROWD / seconds)


def _measure_behind_crowd(stage: Stage, readings: Readings) -> None:
    from benchmarks.jobs import noop, note_moment

    stage.clear()
    with stage.worker() as worker:
        note_moment.delay(1)
        stage.wait_until(lambda: stage.notes[1], "the worker runs jobs", worker)
        ahead_ns = time.time_ns() - time.monotonic_ns()
        crowd_ms = time.time_ns() // 1_000_000 + int(CROWD_SECONDS * 1000)
        due_ms = crowd_ms + BEHIND_MS
        note_moment.using(client="single", run_after=_moment(due_ms)).delay(2)
        _enqueue_crowd(noop.using(client="crowd"), crowd_ms)
        stage.wait_until(lambda: stage.notes[2], "the job behind the crowd started", worker)
    readings.add("delayed.behind_crowd_ms", (stage.notes[2] + ahead_ns) / 1e6 - due_ms)


def _enqueue_crowd(crowd: Any, due_ms: int) -> None:
    """Before their time."""
    crowd = crowd.using(run_after=_moment(due_ms))
    for start in range(0, CROWD, 5000):
        crowd.delay_many([((7, number), {}) for number in range(start, start + 5000)])
    if time.time_ns() // 1_000_000 > due_ms:
        raise MeasurementFailed(f"To enqueue {CROWD} jobs took longer than {CROWD_SECONDS} s.")


def measure_far(stage: Stage, readings: Readings) -> None:
    """One stretch of time, once in a run: a scheduler whose jobs are due in a month."""
    from benchmarks.jobs import noop

    seconds = 30 if stage.is_quick else 60
    stage.clear()
    far = noop.using(run_after=timedelta(days=30))
    for start in range(0, FAR, 5000):
        far.delay_many([((7, number), {}) for number in range(start, start + 5000)])
    with CountingProxy(stage.server.port) as proxy, _scheduler(stage, proxy.url) as scheduler:
        stage.wait_until(lambda: proxy.counted()[0] > 2, "the scheduler asks", scheduler)
        time.sleep(SETTLE_SECONDS)
        trips, _ = proxy.counted()
        cpu, started = cpu_seconds([scheduler.pid]), time.monotonic()
        time.sleep(seconds)
        spent, (trips_after, _) = cpu_seconds([scheduler.pid]) - cpu, proxy.counted()
        minutes = (time.monotonic() - started) / 60
    readings.add("delayed.far_round_trips", (trips_after - trips) / minutes)
    readings.add("delayed.far_cpu", spent / minutes)


def _scheduler(stage: Stage, url: str) -> Any:
    return stage.process("-m", "django", "rtq_scheduler", "-v", "0", url=url)


def _moment(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)
