"""What the instructions of Python are counted of. Runs under callgrind: see instructions.py, which starts it.

Prints its name before each scene and "done" after it, and waits for a line each time. What depends on time is kept from
happening: no batch is cut, no thread has to give the interpreter lock away, and garbage is not collected.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_rtq.core.worker.process.running.runner import Runner
    from django_rtq.core.worker.process.session import WorkerSession

JOBS = 200  # in a scene
FOREVER = 3600.0  # seconds


def main() -> None:
    """Run each scene twice: the first time warms up."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    sys.setswitchinterval(FOREVER)
    import django

    django.setup()
    gc.disable()
    from benchmarks.jobs import noop, noop_async
    from django_rtq.core.tasks.task import Task
    from django_rtq.core.worker.process.running import batch, threaded_runner

    batch.MAX_ACK_DELAY_SECONDS = batch.MAX_AHEAD_SECONDS = batch.CHECK_SECONDS = FOREVER
    threaded_runner.MAX_ACK_DELAY_SECONDS = FOREVER

    def delay(task: Task[..., None]) -> None:
        for number in range(JOBS):
            task.delay(number, 0)

    _measure("delay()", lambda: delay(noop))
    for name, task, slots, at_once in (
        ("a no-op in a batch", noop, 1, 100),
        ("a no-op in 8 threads", noop, 8, 8),
        ("a no-op in 50 coroutines", noop_async, 50, 50),
    ):
        with _Worker(slots, at_once) as worker:
            worker.run()  # what is left of others
            _measure(name, worker.run, before=lambda task=task: delay(task))


def _measure(name: str, act: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
    for _ in range(2):
        before()
        act()
    before()
    _wait(name)
    act()
    _wait("done")


def _wait(line: str) -> None:
    print(line, flush=True)
    sys.stdin.readline()


class _Worker:
    """A worker in this process, without its loop: it claims, runs, and claims again when all slots are free."""

    def __init__(self, slots: int, at_once: int) -> None:
        from django_rtq.core.broker.brokers import get_broker
        from django_rtq.core.broker.worker_broker import for_workers
        from django_rtq.core.worker.process.process import runner_class
        from django_rtq.core.worker.process.session import WorkerSession
        from django_rtq.core.worker.shared_memory import SharedState

        self._slots, self._at_once = slots, at_once
        broker, shared = for_workers(get_broker()), SharedState(slots)
        self._session: WorkerSession = WorkerSession(broker, shared, ["default"], base_name="scene")
        self._runner: Runner = runner_class(slots)(broker.config, shared, self._session)

    def __enter__(self) -> _Worker:
        self._session.sign_on()
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.stop()
        self._session.settle()
        self._session.close()

    def run(self) -> None:
        """Run all jobs that wait."""
        from django_rtq.core.worker.run import runs_of

        while True:
            self._runner.clear_finished_flag()
            fetched = self._session.fetch(self._at_once, idle=self._slots)
            if not fetched.found:
                return
            self._runner.run([run for claimed in fetched.claimed for run in runs_of(claimed, self._session.worker)])
            while not self._runner.is_idle:
                self._runner.clear_finished_flag()
                self._runner.wait(FOREVER)


if __name__ == "__main__":
    main()
