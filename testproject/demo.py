"""The demo: thousands of jobs of several clients, with failures and crashes, and their outcomes.

1. turn the payment service off; enqueue a flood of one client, then jobs of small clients
2. run a worker until no job is left
3. show when each client was served
4. show the dead letters
5. turn the service on, and requeue the dead letters
6. count everything in Redis

Exits with 1 if a number is not as expected.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from io import StringIO
from typing import TYPE_CHECKING, Any

from testproject.demo_environment import DemoEnvironment, DemoError, Progress
from testproject.redis_server import NoRedisServer, RedisDidNotStart

if TYPE_CHECKING:
    from testproject.demo_shop import DemoJobs

FLOOD, EACH = 5000, 10
QUEUES = ("orders", "mail")
STALLED_SECONDS = 60.0  # a slow machine may take its time, as long as jobs finish
UNFINISHED = ("queued", "scheduled", "retrying", "running")


def main() -> int:
    try:
        with DemoEnvironment() as env:
            return Demo(env).run()
    except (DemoError, NoRedisServer, RedisDidNotStart) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped all processes")
        return 130


class Demo:
    """One run of the demo. Collects the numbers that are not as expected."""

    def __init__(self, env: DemoEnvironment) -> None:
        # Modules that import models are imported in functions, after DemoEnvironment has set Django up.
        from django_rtq.console.reading.readers import readers_of

        self._env = env
        self._readers = readers_of()
        self._failures: list[str] = []

    def run(self) -> int:
        """Run all steps. Returns the exit code."""
        jobs = self._enqueue()
        self._run_worker(len(jobs.all))
        self._show_fairness(jobs)
        self._show_dead(jobs)
        self._requeue()
        self._count(jobs)
        self._finish()
        return 1 if self._failures else 0

    # -- the steps, in order

    def _enqueue(self) -> DemoJobs:
        from testproject import demo_shop

        print(f"Redis    {self._env.redis_url}, a private server for this demo")
        orders = demo_shop.open_shop(flood=FLOOD, each=EACH)
        demo_shop.set_service("payment", works=False)
        started = time.monotonic()
        jobs = demo_shop.enqueue_jobs(orders)
        print(f"Enqueued {len(jobs.all):,} jobs in {time.monotonic() - started:.2f} s:")
        print(f"  {FLOOD:,} emails of {demo_shop.FLOODER}, and after them")
        print(f"  {EACH} emails each of {', '.join(demo_shop.SMALL)},")
        print(f"  {len(jobs.unpaid)} charges, while the payment service is off,")
        print(f"  {len(jobs.timed_out)} jobs that exceed their time limit, {len(jobs.buried)} that cannot succeed,")
        print(f"  {len(jobs.crashing)} that crash their process, {len(jobs.healthy)} others.")
        return jobs

    def _run_worker(self, total: int) -> None:
        command = ["rtq_worker", "--queues", ",".join(QUEUES), "--processes", "2"]
        print(f"\n$ manage.py {' '.join(command)}")
        self._env.run(*command)
        self._wait(Progress("finished", total), total)

    def _show_fairness(self, jobs: DemoJobs) -> None:
        print(f"\nFairness: {FLOOD + EACH * len(jobs.small):,} emails, numbered in the order of sending")
        for tenant, emails in jobs.small.items():
            numbers = [job.result for job in emails]
            print(f"  {tenant:<10} enqueued behind {FLOOD:,} others, sent as {min(numbers)} to {max(numbers)}")
            if max(numbers) > FLOOD // 10:
                self._failures.append(f"{tenant} had to wait for the flood")

    def _show_dead(self, jobs: DemoJobs) -> None:
        print("\n$ manage.py rtq_jobs list --state dead")
        letters = json.loads(self._manage("rtq_jobs", "list", "--state", "dead", "--json"))["jobs"]
        kinds = Counter(
            (letter["task"].rpartition(".")[2], letter["error_class"].rpartition(".")[2], letter["attempts"])
            for letter in letters
        )
        for (task, error, runs), number in sorted(kinds.items()):
            print(f"  {number:>3} x {task:<16} {error}, after {runs} {'run' if runs == 1 else 'runs'}")
        self._expect(len(letters), len(jobs.unpaid) + len(jobs.broken), "dead letters")
        crashes = sum(job.refresh().crashes for job in jobs.crashing)
        self._expect(crashes, 2 * len(jobs.crashing), "crashes of a process, which was replaced")

    def _requeue(self) -> None:
        from testproject import demo_shop

        print("\nThe payment service is on again. The other faults remain.\n$ manage.py rtq_jobs requeue --all")
        demo_shop.set_service("payment", works=True)
        print(f"  {self._manage('rtq_jobs', 'requeue', '--all').strip()}")
        total = self._totals()["requeued"]
        self._wait(Progress("finished", total), total)

    def _count(self, jobs: DemoJobs) -> None:
        print("\nSummary, read back from Redis:")
        emails = {job.result for handles in (jobs.flood, *jobs.small.values()) for job in handles}
        totals = self._totals()
        overview = self._overview()
        self._expect(totals["enqueued"], len(jobs.all), "enqueued")
        self._expect(totals["succeeded"], len(jobs.all) - len(jobs.broken), "succeeded")
        self._expect(len(emails), FLOOD + EACH * len(jobs.small), "emails, one for each order")
        self._expect(totals["requeued"], len(jobs.unpaid) + len(jobs.broken), "requeued")
        paid = sum(job.result == "paid" for job in jobs.unpaid)
        self._expect(paid, len(jobs.unpaid), "charges paid after requeueing")
        self._expect(overview["dead"], len(jobs.broken), "dead letters again, because their faults remain")
        self._expect(sum(overview[name] for name in UNFINISHED), 0, "waiting, delayed or running")

    def _finish(self) -> None:
        code = self._env.stop("rtq_worker")
        if code:
            self._failures.append(f"the worker exited with {code}")
        print("\nStopped the worker. All numbers are as expected." if not self._failures else "")
        for wrong in self._failures:
            print(f"WRONG: {wrong}")
        if self._failures:
            print(f"The end of the worker's log:\n{self._env.log_of('rtq_worker')}")

    # -- helpers of the steps

    def _wait(self, progress: Progress, total: int) -> None:
        fewest, deadline = total + 1, 0.0
        while True:
            overview = self._overview()
            left = sum(overview[name] for name in UNFINISHED)
            if left < fewest:
                fewest, deadline = left, time.monotonic() + STALLED_SECONDS
            progress.show(total - left, f"{overview['dead']} dead letters")
            if left == 0:
                break
            self._env.check()
            if time.monotonic() > deadline:
                log = self._env.log_of("rtq_worker")
                raise DemoError(f"No job has finished for {STALLED_SECONDS:.0f} s: {dict(overview)}\n{log}")
            time.sleep(0.1)
        progress.end()

    def _overview(self) -> Counter[str]:
        """The number of jobs in each state, in both queues together."""
        states: Counter[str] = Counter()
        for queue in json.loads(self._manage("rtq", "--json"))["queues"]:
            states.update({name: queue[name] for name in (*UNFINISHED, "dead")})
        return states

    def _totals(self) -> Counter[str]:
        """The counters of both queues since the demo began."""
        totals: Counter[str] = Counter()
        for row in self._readers.overview.read().queues:
            totals.update({name: sum(numbers) for name, numbers in row.series.counts.items()})
        return totals

    def _manage(self, *arguments: str) -> str:
        from django.core.management import call_command

        output, errors = StringIO(), StringIO()
        options: dict[str, Any] = {"stdout": output, "stderr": errors, "no_color": True}
        call_command(*arguments, **options)
        return output.getvalue()

    def _expect(self, figure: int, expected: int, what: str) -> None:
        print(f"  {figure:>6,}  {what}" + ("" if figure == expected else f"   <-- expected {expected:,}"))
        if figure != expected:
            self._failures.append(f"{what}: {figure:,}, not {expected:,}")


if __name__ == "__main__":
    sys.exit(main())
