"""Fairness: when the few jobs of one client start that came behind very many of another."""

from __future__ import annotations

from benchmarks.figures import Readings
from benchmarks.stage import Stage

CROWD = 20_000
FEW = 10
IN_SWING = 3000  # jobs done by a worker that is


def measure(stage: Stage, readings: Readings) -> None:
    """One round: with a worker that starts after them, and with one that is in full swing."""
    readings.add("fairness.last_place", _before_the_worker(stage))
    readings.add("fairness.last_place_in_swing", _during_the_work(stage))


def _before_the_worker(stage: Stage) -> float:
    stage.clear()
    _crowd(CROWD)
    _few()
    with stage.worker("--burst") as worker:
        stage.wait_until(lambda: stage.notes[0] == CROWD + FEW, "all jobs ran", worker)
        stage.finish(worker)
    return max(stage.notes[1 : FEW + 1])


def _during_the_work(stage: Stage) -> float:
    """Places are counted from the moment before they are enqueued: what the worker holds by then comes first."""
    stage.clear()
    _crowd(CROWD + 2 * IN_SWING)
    with stage.worker("--burst") as worker:
        stage.wait_until(lambda: stage.notes[0] >= IN_SWING, "the worker is in full swing", worker)
        before = stage.notes[0]
        _few()
        stage.finish(worker)
    return max(stage.notes[1 : FEW + 1]) - before


def _crowd(jobs: int) -> None:
    from benchmarks.jobs import take_place

    for _ in range(jobs // 1000):
        take_place.using(client="crowd").delay_many([((0,), {})] * 1000)


def _few() -> None:
    from benchmarks.jobs import take_place

    take_place.using(client="few").delay_many([((slot,), {}) for slot in range(1, FEW + 1)])
