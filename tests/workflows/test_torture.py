"""Many workflows while processes and Redis are killed: each step starts once, and each workflow ends.

RTQ_TORTURE_SECONDS says for how long, RTQ_TORTURE_SEED which faults.
"""

import os
import random
import signal
import time
from collections import Counter, defaultdict
from contextlib import suppress

from django_rtq import WorkflowNotFound, WorkflowState, get_workflow, workflow
from django_rtq.exceptions import BrokerError
from tests.app import workflow_steps as tasks
from tests.support.waiting import PATIENCE, wait_until

SECONDS = float(os.environ.get("RTQ_TORTURE_SECONDS", "12"))
MEMBERS, AT_ONCE = 8, 3
REDIS_EVERY = 4.0  # seconds between two deaths of Redis
OPTIONS = ("--queues", "default,low", "--processes", 2)


class Flows:
    """Makes workflows, and requeues dead members."""

    def __init__(self, dice):
        self._dice = dice
        self.made = {}  # name -> id, also of one that may not have arrived
        self.sure = set()  # names of those of which Redis has said that they are there

    def make(self):
        """Members in two queues, one of 50 dies, results, a fan-out in a step, and a call at the first death."""
        name = f"w{len(self.made)}"
        with suppress(BrokerError), workflow(name) as flow:
            self.made[name] = flow.id
            dying = {number for number in range(MEMBERS) if not self._dice.randrange(50)}
            names = [f"{name}-{'dies' if number in dying else 'm'}{number}" for number in range(MEMBERS)]
            first = flow.map(tasks.survive, names[: MEMBERS // 2])
            second = flow.map(tasks.survive.using(queue_name="low"), names[MEMBERS // 2 :])
            gathered = [
                flow.add(tasks.gather, f"{name}-sum{n}", step.results) for n, step in enumerate((first, second))
            ]
            grown = flow.add(tasks.fan_out, f"{name}-fan")
            flow.after(*gathered, grown).add(tasks.survive, f"{name}-end")
            flow.on_death(tasks.survive, f"{name}-death")
        if flow.handle is not None and name in self.made:
            with suppress(BrokerError, WorkflowNotFound):
                flow.handle.progress()
                self.sure.add(name)

    def requeue_dead(self):
        for name in self.open():
            with suppress(BrokerError, WorkflowNotFound):
                flow = get_workflow(self.made[name])
                if flow.state is WorkflowState.BLOCKED:
                    flow.requeue_dead()

    def open(self):
        """The names of those that are not over."""
        states = {}
        for name, flow in self.made.items():
            with suppress(WorkflowNotFound):
                states[name] = get_workflow(flow).state
        return [name for name, state in states.items() if not state.is_final]


class Harm:
    """Kills what a workflow depends on."""

    def __init__(self, dice, start, server):
        self._dice, self._start, self._server = dice, start, server
        self.workers = [start(), start()]
        self.counts = Counter()
        self._redis_at = time.monotonic() + REDIS_EVERY

    def act(self):
        if time.monotonic() > self._redis_at:
            self._server.kill()
            self._server.start()
            self._redis_at = time.monotonic() + REDIS_EVERY
            self.counts["redis"] += 1
        worker = self._dice.choice(self.workers)
        if not self._dice.randrange(6):
            worker.kill()
            self.workers[self.workers.index(worker)] = self._start()
            self.counts["supervisor"] += 1
        elif children := worker.children:
            with suppress(ProcessLookupError):
                os.kill(self._dice.choice(children), signal.SIGKILL)
            self.counts["child"] += 1


def names_of(name):
    """The jobs that a workflow has, but for those that die."""
    fan = [f"{name}-fan{what}" for what in ("", "/0", "/1", "/2", "/end")]
    return {f"{name}-sum0", f"{name}-sum1", f"{name}-end", *fan}


def test_each_step_starts_once_and_each_workflow_ends(rtq_worker, fragile, client, journal):
    seed = int(os.environ.get("RTQ_TORTURE_SEED", "0")) or random.SystemRandom().randrange(10**6)
    dice = random.Random(seed)
    flows = Flows(dice)
    harm = Harm(dice, lambda: rtq_worker(*OPTIONS, url=fragile.url, is_ready=False, LEASE_SECONDS=1.0), fragile)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for _ in range(AT_ONCE):
            flows.make()
        harm.act()
        flows.requeue_dead()

    def are_over():
        with suppress(BrokerError):
            flows.requeue_dead()
            return not flows.open()

    wait_until(are_over, 3 * PATIENCE)
    ids = defaultdict(set)
    for entry in journal.entries("start"):
        name, _, job_id = entry.name.partition(" ")
        ids[name].add(job_id)
    print(f"RTQ_TORTURE_SEED={seed}: {len(flows.made)} workflows, {len(ids)} jobs, {dict(harm.counts)}")  # noqa: T201
    assert {name: found for name, found in ids.items() if len(found) > 1} == {}  # none twice
    for name, flow in flows.made.items():
        try:
            progress = get_workflow(flow).progress()
        except WorkflowNotFound:
            assert name not in flows.sure  # its maker has heard of the error
            continue
        assert (name, progress.state) == (name, WorkflowState.SUCCEEDED)
        assert names_of(name) <= ids.keys()
        assert len([job for job in ids if job.startswith((f"{name}-m", f"{name}-dies"))]) == MEMBERS
        started = 1 + MEMBERS + len(names_of(name)) - 1
        assert progress.done in (started, started + 1)  # with the call at the first death
    assert harm.counts["redis"] >= 1
