"""The workload of the torture test: jobs of every kind, some cancelled, and what must be true of them in the end."""

import itertools
import time
from collections import defaultdict
from contextlib import suppress
from typing import NamedTuple

from django_rtq.core.jobs.job import CancelAnswer
from django_rtq.core.jobs.outcome import read_outcome
from django_rtq.exceptions import BrokerError, JobNotFound, WrongState
from tests.app import tasks, torture_tasks
from tests.core.worker.overlaps import most_at_once
from tests.support.waiting import wait_until

KEYS = 4  # of unique jobs, for each manner
MANNERS = {"alone": torture_tasks.alone, "newest": torture_tasks.newest, "afresh": torture_tasks.afresh}
CANCELS = 12  # after each round


class Call(NamedTuple):
    """A call of a unique task."""

    at: float
    key: str
    name: str
    is_duplicate: bool


class Cancelled(NamedTuple):
    """An answer to a wish to cancel."""

    at: float
    name: str
    answer: CancelAnswer


class Workload:
    """Enqueues, cancels and remembers it."""

    def __init__(self, dice):
        self._dice = dice
        self._number = 0
        self._latest = []  # handle and name of what was enqueued last
        self.ids = set()
        self.names = set()
        self.client_of = {}  # name -> client
        self.calls = []
        self.cancelled = []

    def enqueue(self):
        """A hundred jobs and some, for several clients."""
        names = {"quick": [], "slow": [], "async": [], "failing": [], "later": [], "long": [], "once": []}
        for number in range(self._number, self._number + 100):
            kind = self._dice.choices(list(names), [84, 3, 3, 2, 2, 3, 3])[0]
            names[kind].append(f"{kind}-{number}")
        client = str(self._dice.randrange(5))
        work, awork = tasks.work.using(client=client), tasks.awork.using(client=client)
        calls = {
            "quick": (work, ()),
            "slow": (work, (0.02,)),
            "async": (awork, (0.02,)),
            "failing": (tasks.fail_twice, ()),
            "later": (work.using(run_after=0.3), ()),
            "long": (torture_tasks.endure.using(client=client, at_front=True), (0.4,)),
            "once": (torture_tasks.once, (0.005,)),
        }
        self._latest = []
        for kind, (task, rest) in calls.items():
            handles = task.delay_many([((name, *rest), {}) for name in names[kind]])
            self.ids |= {handle.id for handle in handles}
            self.names |= set(names[kind])
            self.client_of |= dict.fromkeys(names[kind], task.client or "")
            self._latest += zip(handles, names[kind], strict=True) if kind != "failing" else ()
        for place in range(10):
            self._call_unique(f"unique-{self._number + place}")
        self._number += 100

    def _call_unique(self, name):
        manner = self._dice.choice(list(MANNERS))
        key = f"{manner}-{self._dice.randrange(KEYS)}"
        task = MANNERS[manner].using(**self._dice.choice([{"at_front": True}, {}, {"run_after": 0.2}]))
        at = time.monotonic()
        handle = task.delay(key, name, self._dice.choice([0.0, 0.1]))
        self.ids.add(handle.id)
        self.calls.append(Call(at, key, name, handle.duplicate))
        if self._dice.random() < 0.1:
            self._latest.append((handle, name))

    def cancel(self):
        """Some of what was enqueued last: it waits, or runs, or is over."""
        long = [pair for pair in self._latest if pair[1].startswith("long")]
        for handle, name in self._dice.sample(self._latest, CANCELS) + long[:2]:
            with suppress(WrongState, JobNotFound, BrokerError):
                answer = handle.cancel(terminate=self._dice.random() < 0.3)
                self.cancelled.append(Cancelled(time.monotonic(), name, answer))

    def let_pass(self, until, records, release):
        """So that faults do not come all at once, and not more waits than can be done."""
        wait_until(lambda: time.monotonic() > until)
        wait_until(lambda: release() or len(records()) < 3000)


def outcomes(redis):
    """The state in which each job ended: id -> state."""
    found = redis.hgetall("{rtq:default}:results")
    return {job_id.decode(): read_outcome(text)[2]["state"] for job_id, text in found.items()}


def ran_after_cancel(cancelled, runs, is_hit):
    """Jobs that were begun after it was said that they are cancelled, by a process that nothing had happened to.

    One that is asked is held by a worker, and may be about to begin.
    """
    found = []
    for at, name, answer in cancelled:
        late = [run for run in runs[name] if run.at > at and not is_hit(run)]
        allowed = 1 if answer is CancelAnswer.ASKED and len(runs[name]) == len(late) else 0
        found += [(name, answer, at, late)] if len(late) > allowed else []
    return found


def twice_alive(calls, runs, ends, is_hit):
    """Runs of jobs that are alike, at the same time, where nothing had happened to the first."""
    of_key = defaultdict(list)
    for call in calls:
        for run in runs[call.name]:
            of_key[call.key].append((run, call.name, ends.get((call.name, run.pid, run.attempt))))
    found = []
    for key, spans in of_key.items():
        spans.sort()
        for (before, _, end), (after, _, _) in itertools.pairwise(spans):
            if end is not None and end > after.at and not is_hit(before):
                found.append((key, before, end, after))
    return found


def not_followed(calls, runs, cancelled):
    """Calls of jobs that are to run once more for each change, after which none of them was begun."""
    begun, dropped = defaultdict(float), {name for _, name, _ in cancelled}
    keys = {call.name: call.key for call in calls}
    for name, key in keys.items():
        for run in runs[name]:
            begun[key] = max(begun[key], run.at)
    touched = {keys[name] for name in dropped if name in keys}
    changes = [call for call in calls if call.key.startswith("afresh") and call.key not in touched]
    return [call for call in changes if begun[call.key] < call.at]


def most_sound_runs(runs, ends, wanted, is_hit):
    """How many of the wanted jobs ran at the same moment: runs that ended before anything happened to their process."""
    moments = []
    for name in filter(wanted, runs):
        for run in runs[name]:
            end = ends.get((name, run.pid, run.attempt))
            if end is not None and not is_hit(run, end):
                moments += [(run.at, 1), (end, -1)]
    return most_at_once(change for _, change in sorted(moments))
