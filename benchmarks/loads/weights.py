"""Weights of clients: their shares of starts, and what claims cost where clients have weights."""

from __future__ import annotations

from benchmarks.backlog import run_backlog
from benchmarks.counters import counters, marks
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.usage import Cost

WEIGHTS = (1, 2, 5, 10)
STARTS = 20_000
WAITING = STARTS * max(WEIGHTS) // sum(WEIGHTS) * 6 // 5  # of each client: none has its last job within so many starts
CLIENTS = 100  # of the drain
LENGTHS_MS = (1, 5, 50)  # of the jobs of clients that share the time


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    readings.add("weights.deviation", _deviation(env))
    readings.add("weights.time_deviation", _time_deviation(env))
    jobs = 20_000 if env.is_quick else 100_000
    _drain(env, jobs, has_weights=False).record(readings, "weights.none")
    _drain(env, jobs, has_weights=True).record(readings, "weights.drain")
    readings.ratio("weights.drain_vs_none", "weights.drain", "weights.none")


def _deviation(env: Environment) -> float:
    """How far the share of a client is from that of its weight, at the most, with two processes."""
    from benchmarks.jobs import take

    env.clear()
    for place, weight in enumerate(WEIGHTS):
        _set_weight(f"weight-{weight}", weight)
        numbers = range(place * WAITING, (place + 1) * WAITING)
        take.using(client=f"weight-{weight}").delay_many([((number, ""), {}) for number in numbers])
    with env.worker("--processes", "2") as worker:
        env.wait_until(lambda: sum(_started()) >= STARTS, f"{STARTS} starts", worker)
        starts = _started()
    expected = [sum(starts) * weight / sum(WEIGHTS) for weight in WEIGHTS]
    return max(abs(1 - number / share) for number, share in zip(starts, expected, strict=True))


def _time_deviation(env: Environment) -> float:
    """How far the share of the time of a client is from that of the others, at the most, with two processes."""
    from benchmarks.jobs import PROCESSES, nap_of_client
    from django_rtq import rtq

    env.clear()
    rtq.queues["default"].limit(fair_by="seconds")
    seconds = 5 if env.is_quick else 20  # of both processes together
    for place, ms in enumerate(LENGTHS_MS):
        jobs = seconds * 1000 // ms
        nap_of_client.using(client=f"length-{ms}").delay_many([((place, ms), {}) for _ in range(jobs)])

    def used() -> list[int]:
        slots = counters()
        return [sum(slots[place * PROCESSES : (place + 1) * PROCESSES]) for place in range(len(LENGTHS_MS))]

    with env.worker("--processes", "2") as worker:
        env.wait_until(lambda: sum(used()) >= seconds * 1e9, f"{seconds} s of jobs", worker)
        times = used()
    return max(abs(1 - time * len(times) / sum(times)) for time in times)


def _started() -> list[int]:
    """How many jobs of each client."""
    return [marks()[place * WAITING : (place + 1) * WAITING].count(b"\1") for place in range(len(WEIGHTS))]


def _drain(env: Environment, jobs: int, *, has_weights: bool) -> Cost:
    """Jobs of many clients. Each tenth of them has a weight of its own."""
    from benchmarks.jobs import take

    env.clear()
    for client in range(0, CLIENTS, 10) if has_weights else ():
        _set_weight(f"account-{client}", 1 + client / 10)
    for client in range(CLIENTS):
        numbers = range(client, jobs, CLIENTS)
        take.using(client=f"account-{client}").delay_many([((number, ""), {}) for number in numbers])
    return run_backlog(env, jobs)


def _set_weight(client: str, weight: float) -> None:
    from django_rtq import rtq

    rtq.clients[client].limit("default", weight=weight)
