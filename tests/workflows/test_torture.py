"""Many workflows while processes and Redis are killed, and replies get lost: each step starts once, and each workflow
ends.

RTQ_TORTURE_SECONDS says for how long, or RTQ_TORTURE_WORKFLOWS how many, 10,000 at the most: as many are kept.
RTQ_TORTURE_SEED says which faults.
"""

import os
import random
import signal
import time
from collections import Counter, defaultdict, deque
from contextlib import suppress
from pathlib import Path

import pytest
from django.test import override_settings

from django_rtq import WorkflowNotFound, WorkflowState, get_workflow, workflow
from django_rtq.core.broker.brokers import get_broker
from django_rtq.exceptions import BrokerError
from django_rtq.workflows import workflow_store
from testproject.redis_server import PrivateRedis
from tests.app import workflow_steps as tasks
from tests.core.worker.conservation import assert_nothing_left, is_empty, signed_on
from tests.support.fault_proxy import LossyProxy
from tests.support.nightly import IS_NIGHTLY
from tests.support.waiting import PATIENCE, server_ms, wait_until

SECONDS = float(os.environ.get("RTQ_TORTURE_SECONDS", "120" if IS_NIGHTLY else "10"))
WORKFLOWS = int(os.environ.get("RTQ_TORTURE_WORKFLOWS", "0"))
MEMBERS, AT_ONCE = 8, 3
MOST_OPEN = 300 if WORKFLOWS or IS_NIGHTLY else 60  # or else the last ones are made long before the first ones end
KILL_EVERY = 0.25  # seconds between two deaths of processes
REDIS_EVERY = 10.0 if WORKFLOWS or IS_NIGHTLY else 4.0  # and of Redis
LOST_SECONDS = 1.0  # of its log, with "everysec"
LEASE_SECONDS = 1.0
OPTIONS = ("--queues", "default,low", "--processes", 2)


class Flows:
    def __init__(self, dice):
        self._dice = dice
        self.over = set()
        self.made = {}  # name -> id, also of one that may not have arrived
        self.made_at = {}  # when: time.monotonic()
        self.sure = set()  # names of those of which Redis has said that they are there
        self.dying = set()  # names of those with a member that dies

    def make(self):
        """Members in two queues, one of 50 dies, results, a fan-out in a step, and a call at the first death."""
        name = f"w{len(self.made)}"
        with suppress(BrokerError), workflow(name) as flow:
            self.made[name], self.made_at[name] = flow.id, time.monotonic()
            dying = {number for number in range(MEMBERS) if not self._dice.randrange(50)}
            self.dying.update([name] if dying else ())
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
        for name in self.made.keys() - self.over:
            try:
                is_over = get_workflow(self.made[name]).state.is_final
            except WorkflowNotFound:
                is_over = time.monotonic() > self.made_at[name] + PATIENCE  # it may be on its way
            if is_over:
                self.over.add(name)
        return self.made.keys() - self.over


class Harm:
    """Kills what a workflow depends on: children, supervisors, schedulers and Redis, which may lose its last writes."""

    def __init__(self, dice, start, server, *, loses):
        self._dice, self._start, self._server, self._loses = dice, start, server, loses
        self.workers = [start(*OPTIONS), start(*OPTIONS)]
        self.scheduler = start("--queues", "default,low", command="rtq_scheduler")
        self.counts = Counter()
        self.losses = []  # from when to when Redis has lost what was written: time.monotonic()
        self._logs = deque(maxlen=int(2 * LOST_SECONDS / 0.05))  # when, the file and its size
        self._next_at, self._redis_at = 0.0, time.monotonic() + REDIS_EVERY

    @property
    def children(self):
        """The processes that run jobs."""
        return {child for worker in self.workers for child in worker.children}

    def act(self):
        """Called often: does what is due."""
        now = time.monotonic()
        if self._loses and (not self._logs or now > self._logs[-1][0] + 0.05):
            log = self._log()
            self._logs.append((now, log, log.stat().st_size))
        if now > self._redis_at:
            self._server.kill()
            if self._loses:
                self._cut_log()
            self._server.start()
            self._redis_at = time.monotonic() + REDIS_EVERY
            self.counts["redis"] += 1
        if now > self._next_at:
            self._kill_one()
            self._next_at = now + KILL_EVERY

    def _kill_one(self):
        number = self._dice.randrange(12)
        worker = self._dice.choice(self.workers)
        if number == 0:
            self.scheduler.kill()
            self.scheduler = self._start("--queues", "default,low", command="rtq_scheduler")
            self.counts["scheduler"] += 1
        elif number <= 2:
            worker.kill()
            self.workers[self.workers.index(worker)] = self._start(*OPTIONS)
            self.counts["supervisor"] += 1
        elif children := worker.children:
            with suppress(ProcessLookupError):
                os.kill(self._dice.choice(children), signal.SIGKILL)
            self.counts["child"] += 1

    def _log(self):
        """The file to which Redis appends now."""
        return max(Path(self._server.directory).glob("appendonlydir/*.incr.aof"), key=lambda path: path.stat().st_mtime)

    def _cut_log(self):
        """As if the machine had lost power: the last second was not written to the disk."""
        now, log = time.monotonic(), self._log()
        at, _, size = min((entry for entry in self._logs if entry[0] > now - LOST_SECONDS and entry[1] == log),
                          default=(now, log, log.stat().st_size))  # fmt: skip
        os.truncate(log, size)
        self.losses.append((at, now))
        self._logs.clear()

    def has_lost(self, moment, later=0.0):
        """Whether Redis has lost what was written then, or so much earlier."""
        return any(began - 0.1 <= moment <= ended + later for began, ended in self.losses)


def names_of(name):
    """The jobs that a workflow has, but for those that die."""
    fan = [f"{name}-fan{what}" for what in ("", "/0", "/1", "/2", "/end")]
    return {f"{name}-sum0", f"{name}-sum1", f"{name}-end", *fan}


@pytest.fixture(params=["always", "everysec"])
def appendfsync(request):
    return request.param


@pytest.fixture
def fragile(appendfsync):
    """A server that keeps its data when it is killed."""
    with PrivateRedis(appendonly=True, arguments=["--appendfsync", appendfsync]) as server:
        yield server


def test_each_step_starts_once_and_each_workflow_ends(rtq_worker, fragile, appendfsync, client, journal):
    seed = int(os.environ.get("RTQ_TORTURE_SEED", "0")) or random.SystemRandom().randrange(10**6)
    print(f"RTQ_TORTURE_SEED={seed}")  # noqa: T201 - to be found in the report of a failure
    dice = random.Random(seed)
    flows = Flows(dice)
    with LossyProxy(fragile.port, random.Random(seed + 1)) as proxy:

        def start(*arguments, **options):
            return rtq_worker(*arguments, url=proxy.url, is_ready=False, LEASE_SECONDS=LEASE_SECONDS, **options)

        with override_settings(RTQ={"REDIS": proxy.url, "LEASE_SECONDS": LEASE_SECONDS}):
            harm = Harm(dice, start, fragile, loses=appendfsync == "everysec")
            make(flows, harm)
            proxy.is_lossy = False
            flows.over.clear()  # Redis may have lost the end of some

            def are_over():
                with suppress(BrokerError):
                    flows.requeue_dead()
                    return not flows.open()

            wait_until(are_over, 3 * PATIENCE + WORKFLOWS / 50)
        ids = defaultdict(set)
        for entry in journal.entries("start"):
            name, _, job_id = entry.name.partition(" ")
            ids[name].add(job_id)
        counts = {**harm.counts, **proxy.counts}
        print(f"{appendfsync}: {len(flows.made)} workflows, {len(ids)} jobs, {counts}")  # noqa: T201
        first_at = first_starts(journal)
        check_starts(ids, first_at, harm)
        lost = check_ends(flows, ids, first_at, harm)
        print(f"lost with the log: {sorted(lost)}")  # noqa: T201
        wait_until(lambda: is_empty(client) and signed_on(client) == harm.children)
        assert [process.stop() for process in (*harm.workers, harm.scheduler)] == [0, 0, 0]
        check_nothing_left(flows, client)
    assert harm.counts["redis"] >= 1


def make(flows, harm):
    """Make workflows and do harm until the time is over, or there are enough."""
    until, looked_at = time.monotonic() + SECONDS, 0.0
    while len(flows.made) < WORKFLOWS if WORKFLOWS else time.monotonic() < until:
        open_ones = flows.made
        with suppress(BrokerError):
            if time.monotonic() > looked_at + 1:
                flows.requeue_dead()
                looked_at = time.monotonic()
            open_ones = flows.open()
        room = min(AT_ONCE, WORKFLOWS - len(flows.made)) if WORKFLOWS else AT_ONCE
        for _ in range(room if len(open_ones) < MOST_OPEN else 0):
            flows.make()
            harm.act()
        harm.act()


def first_starts(journal):
    first_at = {}
    for entry in journal.entries("start"):
        first_at.setdefault(entry.name.partition(" ")[0], entry.at)
    return first_at


def check_starts(ids, first_at, harm):
    """Each job had one id, but for those whose start Redis has lost."""
    twice = {name for name, found in ids.items() if len(found) > 1}
    lost = {name for name in twice if harm.has_lost(first_at[name], later=2 * LEASE_SECONDS)}
    print(f"started twice because the log lost the first start: {sorted(lost)}")  # noqa: T201
    assert twice - lost == set()


def check_ends(flows, ids, first_at, harm):
    """Each workflow has succeeded, with all of its jobs. Returns the names of those that Redis has lost."""
    lost = set()
    for name, flow in flows.made.items():
        try:
            progress = get_workflow(flow).progress()
        except WorkflowNotFound:
            if harm.has_lost(flows.made_at[name]):
                lost.add(name)
            else:
                assert name not in flows.sure  # its maker has heard of the error
            continue
        assert (name, progress.state) == (name, WorkflowState.SUCCEEDED)
        assert names_of(name) <= ids.keys()
        assert (
            len([number for number in range(MEMBERS) if {f"{name}-m{number}", f"{name}-dies{number}"} & ids.keys()])
            == MEMBERS
        )
        death, done = f"{name}-death", MEMBERS + len(names_of(name))
        assert name in flows.dying or death not in ids
        # Who has died before the log was cut may live in what Redis has run since.
        may_be_lost = death in ids and harm.has_lost(first_at[death], later=2 * LEASE_SECONDS)
        assert progress.done == done + (death in ids) or (progress.done == done and may_be_lost)
    return lost


def check_nothing_left(flows, client):
    """When the workflows are forgotten, too, no key of theirs is left, and none of a job."""
    store, now_ms = workflow_store(get_broker()), server_ms(client)
    assert {store.forget(flow, latest_ms=now_ms) for flow in flows.made.values()} <= {"forgotten", "missing"}
    assert_nothing_left(client)
