"""What many workers cost Redis: looking at a queue of 8,000 of them, and the heartbeats of their supervisors."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from benchmarks.environment import Environment, MeasurementFailed
from benchmarks.figures import Readings
from benchmarks.usage import commands_of, redis_cpu

QUEUE, QUEUES, PROCESSES, CALLS, HEARTBEATS = "queue-0", 20, 8, 200, 2
AT_ONCE = 500
INTERVAL = 0.4  # of a lease, between two heartbeats
BODY = '{"task":"benchmarks.jobs.noop","args":[7,42]}'

Infos = dict[str, dict[str, Any]]  # of the processes of a supervisor


def measure(env: Environment, readings: Readings) -> None:
    """One queue, in which each process runs a job, then 19 others with the same workers."""
    env.clear()
    supervisors = [_processes(host) for host in range(200 if env.is_quick else 1000)]
    queues = [f"queue-{number}" for number in range(QUEUES)]
    readings.remark(f"workers: {len(supervisors):,} supervisors of {PROCESSES} processes")
    _sign_on(queues[:1], supervisors)
    jobs = _let_run(supervisors)
    _wait_for_runners(env)
    for name, look in _looks(jobs).items():
        readings.add(f"workers.{name}", _redis_us(env, look, 20 if name == "overview" else CALLS))
    _add_heartbeats(env, readings, queues[:1], supervisors)
    _sign_on(queues[1:], supervisors)
    _add_heartbeats(env, readings, queues, supervisors)
    env.clear()


def _processes(host: int) -> Infos:
    info = {"host": f"host-{host}", "pid": 4711, "supervisor": 4711, "queues": QUEUE, "slots": 1, "jobs_done": 7}
    return {f"host-{host}:{number}:benchmark": info for number in range(PROCESSES)}


def _sign_on(queues: Sequence[str], supervisors: Sequence[Infos]) -> None:
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers

    get_broker().register_queues(queues)
    for worker in chain.from_iterable(supervisors):
        for_workers(get_broker()).sign_on(queues, worker)


def _let_run(supervisors: Sequence[Infos]) -> list[str]:
    """Each process claims a job. Returns the ids."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.messages import NewJob
    from django_rtq.core.broker.worker_broker import for_workers
    from django_rtq.core.jobs.job import new_job_id

    workers = list(chain.from_iterable(supervisors))
    jobs = [NewJob(new_job_id(), 0, 3, "", "", "", "", BODY) for _ in workers]
    for start in range(0, len(jobs), AT_ONCE):
        get_broker().enqueue(QUEUE, jobs[start : start + AT_ONCE])
    for worker in workers:
        for_workers(get_broker()).claim(worker, [QUEUE], 1)
    return [job.id for job in jobs]


def _wait_for_runners(env: Environment) -> None:
    """Until heartbeats have noted who runs each job."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    for _ in range(1000):
        broker.redis.execute([broker.repair_command(QUEUE, 0)])
        if env.redis.hget(broker.keys.of(QUEUE).runners, "") == b"ready":
            return
    raise MeasurementFailed("1,000 heartbeats did not note who runs the jobs.")


def _looks(jobs: Sequence[str]) -> dict[str, Callable[[], object]]:
    """What people do with a running job, or a queue."""
    from django_rtq.console.reading.readers import readers_of
    from django_rtq.core.broker.one_job import JobAccess

    readers, ids = readers_of(), iter(random.sample(list(jobs), 2 * CALLS))

    return {
        "queue": lambda: readers.queues.details([QUEUE]),
        "find": lambda: readers.find(next(ids)),
        "cancel": lambda: JobAccess(readers.broker).cancel(next(ids)),
        "overview": readers.overview.read,
    }


def _redis_us(env: Environment, look: Callable[[], object], calls: int) -> float:
    """CPU of Redis for each call."""
    look()  # loads scripts
    started = redis_cpu(env.redis)
    for _ in range(calls - 1):
        look()
    return (redis_cpu(env.redis) - started) / (calls - 1) * 1e6


def _add_heartbeats(env: Environment, readings: Readings, queues: Sequence[str], supervisors: Sequence[Infos]) -> None:
    percents, commands = _heartbeats(env, queues, supervisors)
    readings.add(f"workers.heartbeats_{len(queues)}", percents)
    readings.add(f"workers.heartbeat_commands_{len(queues)}", commands)


def _heartbeats(env: Environment, queues: Sequence[str], supervisors: Sequence[Infos]) -> tuple[float, float]:
    """The percentage of a core that Redis needs for the heartbeats of all supervisors, and the commands of each.

    Every so often nobody has tended the queues lately, as it is when the supervisors send theirs over an interval.
    """
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import TENDED_IN_A_LEASE, for_workers
    from django_rtq.limits.store import duties

    broker = for_workers(get_broker())
    (duty,) = duties(broker, queues)
    pause = round(len(supervisors) / (INTERVAL * TENDED_IN_A_LEASE))
    for infos in supervisors:  # to sign on took longer than leases last
        broker.heartbeat(queues, infos, promote=True, reads={duty.name: duty.reads})
    started, commands = redis_cpu(env.redis), commands_of(env.redis)
    for place, infos in HEARTBEATS * list(enumerate(supervisors)):
        if place % pause == 0:
            for queue in queues:
                env.redis.hdel(broker.keys.of(queue).clock, "tended")
                commands += 1
        broker.heartbeat(queues, infos, promote=True, reads={duty.name: duty.reads})
    spent = (redis_cpu(env.redis) - started) / HEARTBEATS / (INTERVAL * broker.config.lease_seconds) * 100
    return spent, (commands_of(env.redis) - commands) / HEARTBEATS / len(supervisors)
