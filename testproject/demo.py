"""The demo: thousands of jobs of several clients, failures, crashes, and what becomes of them.

1. break the payment service; enqueue a flood of one client, then what the small clients want
2. let the worker run until nothing is left that can run
3. who was served when
4. what became of the jobs that went wrong
5. mend the service, requeue the dead letters
6. count everything, in Redis

Ends with 1 when a figure is not what it should be.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from io import StringIO
from typing import TYPE_CHECKING, Any

from testproject.demo_stage import Progress, Stage, StageError
from testproject.redis_server import NoRedisServer, RedisDidNotStart

if TYPE_CHECKING:
    from testproject.demo_shop import Work

FLOOD, EACH = 5000, 10
QUEUES = ("orders", "mail")
PATIENCE_SECONDS = 60.0
UNSETTLED = ("queued", "scheduled", "retrying", "running")


def main() -> int:
    try:
        with Stage() as stage:
            return Demo(stage).run()
    except (StageError, NoRedisServer, RedisDidNotStart) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; nothing is left running")
        return 130


class Demo:
    """One performance on a stage. Remembers which figures were not as they should be."""

    def __init__(self, stage: Stage) -> None:
        # Here and below: what imports models has to wait until the stage has set Django up.
        from django_rtq.inspector.inspector import get_inspector

        self._stage = stage
        self._inspector = get_inspector()
        self._wrong: list[str] = []

    def run(self) -> int:
        """Play it. Returns the exit code."""
        work = self._enqueue()
        self._let_it_run(len(work.all))
        self._show_turns(work)
        self._show_dead(work)
        self._mend()
        self._count(work)
        self._end()
        return 1 if self._wrong else 0

    # -- the acts, in order

    def _enqueue(self) -> Work:
        from testproject import demo_shop

        print(f"Redis    {self._stage.redis_url}, private: it goes away with the demo")
        orders = demo_shop.open_shop(flood=FLOOD, each=EACH)
        demo_shop.switch("payment", works=False)
        started = time.monotonic()
        work = demo_shop.enqueue_work(orders)
        print(f"Enqueued {len(work.all):,} jobs in {time.monotonic() - started:.2f} s:")
        print(f"  {FLOOD:,} mails of {demo_shop.FLOODER}; and only then")
        print(f"  {EACH} mails each of {', '.join(demo_shop.SMALL)},")
        print(f"  {len(work.unpaid)} charges while the payment service is broken,")
        print(f"  {len(work.too_long)} jobs that run for too long, {len(work.hopeless)} without hope,")
        print(f"  {len(work.deadly)} that kill the process they run in, {len(work.sound)} others.")
        return work

    def _let_it_run(self, total: int) -> None:
        command = ["rtq_worker", "--queues", ",".join(QUEUES), "--processes", "2"]
        print(f"\n$ manage.py {' '.join(command)}")
        self._stage.run(*command)
        self._wait(Progress("settled", total), total)

    def _show_turns(self, work: Work) -> None:
        print(f"\nTurns: {FLOOD + EACH * len(work.small):,} mails, numbered in the order of sending")
        for tenant, jobs in work.small.items():
            numbers = [job.result for job in jobs]
            print(f"  {tenant:<10} enqueued behind {FLOOD:,} others, sent as {min(numbers)} to {max(numbers)}")
            if max(numbers) > FLOOD // 10:
                self._wrong.append(f"{tenant} was kept waiting by the flood")

    def _show_dead(self, work: Work) -> None:
        print("\n$ manage.py rtq_dead list")
        letters = json.loads(self._manage("rtq_dead", "list", "--json"))
        kinds = Counter(
            (letter["task"].rpartition(".")[2], letter["error_class"].rpartition(".")[2], letter["attempts"])
            for letter in letters
        )
        for (task, error, runs), number in sorted(kinds.items()):
            print(f"  {number:>3} x {task:<16} {error}, after {runs} {'run' if runs == 1 else 'runs'}")
        self._expect(len(letters), len(work.unpaid) + len(work.bad), "dead letters")
        crashes = sum(job.refresh().crashes for job in work.deadly)
        self._expect(crashes, 2 * len(work.deadly), "times a process was taken down, and replaced")

    def _mend(self) -> None:
        from testproject import demo_shop

        print("\nThe payment service is mended; the other faults are not.\n$ manage.py rtq_dead requeue --all")
        demo_shop.switch("payment", works=True)
        print(f"  {self._manage('rtq_dead', 'requeue', '--all').strip()}")
        total = self._totals()["requeued"]
        self._wait(Progress("settled", total), total)

    def _count(self, work: Work) -> None:
        print("\nSummary, read back from Redis:")
        mails = {job.result for jobs in (work.flood, *work.small.values()) for job in jobs}
        totals = self._totals()
        overview = self._overview()
        self._expect(totals["enqueued"], len(work.all), "enqueued")
        self._expect(totals["succeeded"], len(work.all) - len(work.bad), "succeeded")
        self._expect(len(mails), FLOOD + EACH * len(work.small), "mails, each order's once")
        self._expect(totals["requeued"], len(work.unpaid) + len(work.bad), "requeued")
        paid = sum(job.result == "paid" for job in work.unpaid)
        self._expect(paid, len(work.unpaid), "charges paid after that")
        self._expect(overview["dead"], len(work.bad), "dead again, for their faults are still there")
        self._expect(sum(overview[name] for name in UNSETTLED), 0, "waiting, delayed or running")

    def _end(self) -> None:
        code = self._stage.stop("rtq_worker")
        if code:
            self._wrong.append(f"the worker ended with {code}")
        print("\nThe worker was stopped; all is as it should be." if not self._wrong else "")
        for wrong in self._wrong:
            print(f"WRONG: {wrong}")
        if self._wrong:
            print(f"The worker said last:\n{self._stage.log_of('rtq_worker')}")

    # -- inside

    def _wait(self, progress: Progress, total: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            overview = self._overview()
            left = sum(overview[name] for name in UNSETTLED)
            progress.show(total - left, f"{overview['dead']} of them dead")
            if left == 0:
                break
            self._stage.check()
            if time.monotonic() > deadline:
                log = self._stage.log_of("rtq_worker")
                raise StageError(f"{left} jobs are left after {PATIENCE_SECONDS:.0f} s: {dict(overview)}\n{log}")
            time.sleep(0.1)
        progress.end()

    def _overview(self) -> Counter[str]:
        """How many jobs of both queues are in which state."""
        states: Counter[str] = Counter()
        for queue in json.loads(self._manage("rtq_status", "--json"))["queues"]:
            states.update({name: queue[name] for name in (*UNSETTLED, "dead")})
        return states

    def _totals(self) -> Counter[str]:
        """What was counted since the demo began."""
        totals: Counter[str] = Counter()
        for queue in QUEUES:
            counts = self._inspector.overview.time_series(queue).counts
            totals.update({name: sum(numbers) for name, numbers in counts.items()})
        return totals

    def _manage(self, *arguments: str) -> str:
        from django.core.management import call_command

        said, trouble = StringIO(), StringIO()
        options: dict[str, Any] = {"stdout": said, "stderr": trouble, "no_color": True}
        call_command(*arguments, **options)
        return said.getvalue()

    def _expect(self, figure: int, wanted: int, what: str) -> None:
        print(f"  {figure:>6,}  {what}" + ("" if figure == wanted else f"   <-- should be {wanted:,}"))
        if figure != wanted:
            self._wrong.append(f"{what}: {figure:,}, not {wanted:,}")


if __name__ == "__main__":
    sys.exit(main())
