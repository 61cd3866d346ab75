"""What Redis should hold of a queue, with the names of keys.py, and how the keys look then.

The verbs that change it are in queue.py.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tests.protocol.model.used import Used, rounded

if TYPE_CHECKING:
    from tests.protocol.model.queue import Queue

LEASE_MS, RESULT_MS, DEAD_MS = 15_000, 300_000, 120_000  # what the models keep, and for how long

Lane = tuple[int, str]  # band and client
Entry = tuple[str, int, str]  # id, ms to keep or failures to count, outcome or failure
_SHARED = ("clock", "limits")


class Ahead(float):
    """The band just above a priority, of jobs that have waited for their time."""

    @classmethod
    def of(cls, band: float) -> Ahead:
        return cls(int(band) + 0.5) if not isinstance(band, Ahead) else band

    @property
    def priority(self) -> int:
        return int(self - 0.5)

    def __str__(self) -> str:
        return f"{self.priority}+"

    def __format__(self, spec: str) -> str:
        return str(self)


@dataclass
class Clock:
    """The server's time, ms. It stands still unless a test moves it."""

    now: int


@dataclass(frozen=True)
class Limits:
    """What the Config says of how much is kept."""

    lease_ms: int
    max_results: int
    max_dead_letters: int
    dead_ms: int


@dataclass
class Record:
    """What a job was sent as."""

    band: int
    max_crashes: int
    ready: int
    expires: int
    client: str
    body: str

    def __str__(self) -> str:
        return f"{self.band} {self.max_crashes} {self.ready} {self.expires} {self.client}\n{self.body}"

    @property
    def lane(self) -> Lane:
        return self.band, self.client


@dataclass
class Note:
    """What a job holds."""

    until: str
    limit_ms: int
    digest: str
    successor: str = ""

    def __str__(self) -> str:
        return f"{self.until} {self.limit_ms} {self.digest} {self.successor}".rstrip()


@dataclass
class State:
    """One queue. Redis knows no empty list, hash, set or zset: neither does `keyspace()`."""

    clock: Clock
    limits: Limits
    delayed_first: bool = False

    jobs: dict[str, Record] = field(default_factory=dict)
    bands: set[int] = field(default_factory=set)
    rings: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))  # clients in the order of turns
    lanes: dict[Lane, list[str]] = field(default_factory=lambda: defaultdict(list))
    waiting: dict[Lane, int] = field(default_factory=dict)  # the key "lanes"
    waiting_since: dict[str, int] = field(default_factory=dict)
    cancelled_in_lane: dict[str, Lane] = field(default_factory=dict)
    scheduled: dict[str, int] = field(default_factory=dict)
    retrying: dict[str, int] = field(default_factory=dict)
    scheduled_by_client: dict[str, int] = field(default_factory=dict)  # client -> when promote looks at it next
    workers: dict[str, int] = field(default_factory=dict)
    signed_on: dict[str, int] = field(default_factory=dict)  # who has signed on, and when
    running: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)
    cancel_requests: dict[str, str] = field(default_factory=dict)
    progress: dict[str, str] = field(default_factory=dict)
    step_jobs: dict[str, str] = field(default_factory=dict)  # what a job waits for, or has waited for last
    steps: dict[str, dict[str, str]] = field(default_factory=dict)  # what a job remembers
    logs: dict[str, list[str]] = field(default_factory=dict)
    logged: list[str] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    recent_results: list[str] = field(default_factory=list)
    result_times: dict[str, int] = field(default_factory=dict)
    result_expiry: dict[str, int] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    finished_before: set[str] = field(default_factory=set)
    no_outcome: list[str] = field(default_factory=list)
    no_outcome_before: list[str] = field(default_factory=list)
    unique: dict[str, str] = field(default_factory=dict)  # digest -> id
    digests: dict[str, Note] = field(default_factory=dict)  # id -> what it holds
    work_signal: bool = False
    due_signal: bool = False
    clock_state: dict[str, int] = field(default_factory=dict)
    stats: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    hours: dict[int, Counter[str]] = field(default_factory=dict)  # the sums of `stats`
    tasks: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # of each hour
    failed_runs: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # of each minute
    failing: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # task -> number, since, 0
    paused: int | None = None
    task_pauses: dict[str, str] = field(default_factory=dict)  # task -> number, since when, who; only number: resumed
    is_bulk: bool = False  # enqueue_many is at work
    limit_sources: dict[str, str] = field(default_factory=dict)
    set_limits: dict[str, str] = field(default_factory=dict)  # the key "limits"
    turns: dict[Lane, float] = field(default_factory=dict)  # of the clients in rings, while there are weights
    is_marked: bool = False  # a client has had a weight: newcomers get numbers beyond all turns
    blocked: dict[str, list[int]] = field(default_factory=dict)  # client -> bands, as written
    blocked_in: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))  # clients whose turn is "inf"
    rate_times: dict[str, float] = field(default_factory=dict)  # "queue", "client:<name>" -> theoretical arrival time
    next_starts: dict[str, int] = field(
        default_factory=dict
    )  # the same -> when it may start, if only its rate stops it
    used: dict[str, Used] = field(default_factory=dict)  # client -> what is known of its jobs, with fair_by
    mean: float | None = None  # the average time of all jobs
    last_turns: dict[int, float] = field(default_factory=dict)  # band -> the first turn when a client was blocked
    standing_aside: frozenset[str] = frozenset()  # clients that get no job of this claim
    is_listed: bool = True  # in the list of queues

    def forget(self, idle_ms: int, *, discard: bool) -> str:
        if self.jobs:
            return "jobs"
        if self.paused is not None or self.task_pauses:
            return "paused"
        if self.limit_sources or self.blocked:
            return "limits"
        if self.workers or self.signed_on:
            return "workers"
        is_recent = self.clock.now - self.clock_state.get("contact", 0) < idle_ms
        if self.finished or self.finished_before or is_recent:
            return "recent"
        if self.results and not discard:
            return "outcomes"
        was_listed, fresh = self.is_listed, State(self.clock, self.limits, self.delayed_first)
        fresh.clock_state, fresh.tasks, fresh.unique = self.clock_state, self.tasks, self.unique
        fresh.failed_runs, fresh.failing = self.failed_runs, self.failing
        fresh.stats, fresh.hours = self.stats, self.hours
        fresh.logs, fresh.logged = self.logs, self.logged
        fresh.steps = self.steps
        fresh.stats.pop(self.clock.now // 60_000, None)
        fresh.is_listed = False
        vars(self).update(vars(fresh))
        return "forgotten" if was_listed else "missing"

    def copied(self) -> dict[str, Any]:
        """All data of this queue, to go back to."""
        return {item.name: deepcopy(getattr(self, item.name)) for item in fields(State) if item.name not in _SHARED}

    def count(self, name: str, n: int = 1) -> None:
        counters = self.stats[self.clock.now // 60_000]
        self.is_listed = self.is_listed or (name == "enqueued" and not counters[name])
        counters[name] += n

    def keyspace(self) -> dict[str, object]:
        """The keys as they should be: hashes of texts, zsets of numbers. A ring is told by its order."""
        keys: dict[str, object] = {
            "jobs": texts(self.jobs),
            "bands": {str(band): band for band in self.bands},
            "lanes": {lane_name(lane): since for lane, since in self.waiting.items()},
            "cancelled_in_lane": {job_id: lane_name(lane) for job_id, lane in self.cancelled_in_lane.items()},
            "errors": {job_id: "".join(f"{line}\n" for line in lines) for job_id, lines in self.errors.items()},
            "work_signal": {"work": 0} if self.work_signal else {},
            "due_signal": {"due": 0} if self.due_signal else {},
            "paused": self._pauses(),
        }
        for name in (
            *("scheduled", "retrying", "scheduled_by_client", "workers", "signed_on", "dead"),
            *("results", "result_times", "result_expiry"),
        ):
            keys[name] = dict(getattr(self, name))
        for name in ("finished", "finished_before"):
            keys[name] = set(getattr(self, name))
        for name in ("no_outcome", "no_outcome_before", "recent_results", "logged"):
            keys[name] = list(getattr(self, name))
        for name in ("waiting_since", "failures", "crashes", "digests", "cancel_requests", "progress", "step_jobs"):
            keys[name] = texts(getattr(self, name))
        keys["clock"] = texts(self.clock_state)
        keys |= self._limit_keys()
        keys |= {f"lane:{lane_name(lane)}": list(job_ids) for lane, job_ids in self.lanes.items()}
        keys |= {f"scheduled_by_client:{client}": self.scheduled_of(client) for client in self.scheduled_by_client}
        keys |= {f"running:{worker}": dict(held) for worker, held in self.running.items()}
        keys |= {f"log:{job_id}": list(lines) for job_id, lines in self.logs.items()}
        keys |= {f"steps:{job_id}": dict(fields) for job_id, fields in self.steps.items()}
        keys |= {f"unique:{digest}": job_id for digest, job_id in self.unique.items()}
        keys |= {f"stats:{minute}": texts(counters) for minute, counters in self.stats.items()}
        keys |= {f"hours:{hour}": texts(counters) for hour, counters in self.hours.items()}
        keys |= {f"tasks:{hour}": texts(counters) for hour, counters in self.tasks.items()}
        keys |= {f"failed_runs:{minute}": texts(counters) for minute, counters in self.failed_runs.items()}
        keys["failing"] = {task: " ".join(map(str, streak)) for task, streak in self.failing.items()}
        return {name: value for name, value in keys.items() if value}

    def _pauses(self) -> dict[str, str]:
        of_tasks = {f"task:{task}": entry for task, entry in self.task_pauses.items()}
        return of_tasks if self.paused is None else {"queue": str(self.paused), **of_tasks}

    def _limit_keys(self) -> dict[str, object]:
        """Of a ring: those that take turns, and behind them those that are blocked, in the order of their names."""
        bands = {*self.rings, *self.blocked_in}
        return {
            "limits": {**self.set_limits, **({"weights": str(self.weights)} if self.weights else {})},
            "waiting_limits": {
                field: pair.partition("=")[2]
                for field, text in self.set_limits.items()
                for pair in reversed(text.split())
                if pair.startswith("max_waiting=") and not field.startswith("paused:")
            },
            "limit_sources": dict(self.limit_sources),
            "paused_clients": {
                field.removeprefix("paused:"): int(text.split(" ")[0])
                for field, text in self.set_limits.items()
                if field.startswith("paused:") and text[:1].isdecimal()
            },
            "running_counts": texts(self.running_counts()),
            "rate_times": {member: round(moment, 2) for member, moment in self.rate_times.items()},
            "next_starts": dict(self.next_starts),
            "blocked": {client: " ".join(map(str, bands)) for client, bands in self.blocked.items()},
            "job_times": self.job_times(),
            **{f"ring:{band}": [*self.rings[band], *sorted(self.blocked_in[band])] for band in bands},
        }

    def job_times(self) -> dict[str, str]:
        """The key."""
        texts = {f"client:{client}": str(used) for client, used in self.used.items()}
        texts |= {f"turn:{band}": rounded([turn]) for band, turn in self.last_turns.items()}
        return texts | ({} if self.mean is None else {"queue": rounded([self.mean])})

    @property
    def weights(self) -> int:
        """How many clients, or defaults, have a weight."""
        fields = [text for field, text in self.set_limits.items() if field.startswith("client")]
        return sum("weight=" in text for text in fields)

    def running_counts(self) -> Counter[str]:
        """How many jobs run, as scripts count them while there are limits."""
        entries = [entry for held in self.running.values() for entry in held.values()] if self.set_limits else []
        owners = [entry.split(" ", 2)[2] for entry in entries if entry.count(" ") > 1]
        return Counter([*(f"client:{client}" for client in owners), *("queue" for _ in owners)])

    def scheduled_of(self, client: str) -> dict[str, int]:
        """The jobs of a client that wait for their time."""
        return {job_id: due for job_id, due in self.scheduled.items() if self.jobs[job_id].client == client}


class Part:
    """What a queue does in one matter."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """As a hash of Redis keeps them."""
    return {name: str(value) for name, value in values.items()}


def lane_name(lane: Lane) -> str:
    """As keys and members of keys name it."""
    return f"{lane[0]}:{lane[1]}"


def in_order(moments: Mapping[str, float]) -> list[str]:
    """The members of a zset, the earliest first."""
    return sorted(moments, key=lambda member: (moments[member], member))


def due_at(moments: Mapping[str, float], now: int) -> list[str]:
    """Those whose moment has come."""
    return [member for member in in_order(moments) if moments[member] <= now]


def made_at(job_id: str) -> int | None:
    """The time that an id tells; None for an id that tells none."""
    try:
        return int(job_id[:12], 16)
    except ValueError:
        return None


def with_task(outcome: str, body: str) -> str:
    """An outcome with the name of the task, which the body of the record has."""
    task = re.match(r'{("task":"[^"\\]*")', body)
    return f"{outcome[:-1]},{task[1]}}}" if task else outcome


def values_of(texts: str) -> dict[str, str]:
    """The first value of each name holds."""
    return dict(pair.split("=") for pair in reversed(texts.split()))
