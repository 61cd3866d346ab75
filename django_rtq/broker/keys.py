"""The names of all keys, and nowhere else.

All keys of a queue share one hash tag, so that a queue is one slot of a Redis Cluster.
"""

from __future__ import annotations

from django_rtq.conf import QUEUE_NAME
from django_rtq.exceptions import InvalidTask


def check_queue_name(name: object) -> None:
    """Raises InvalidTask for a name that cannot be part of a key."""
    if not isinstance(name, str) or not QUEUE_NAME.fullmatch(name):
        raise InvalidTask(
            f"{name!r} is not a queue name: use 1 to 100 of the letters A-Z and a-z, digits, '.', '_' and '-'."
        )


class QueueKeys:
    """The keys of one queue."""

    __slots__ = (
        "_tag",
        "bands",
        "busy",
        "crashes",
        "dead",
        "digests",
        "due",
        "errors",
        "failures",
        "finished",
        "ghosts",
        "holders",
        "jobs",
        "kept",
        "lane",
        "lanes",
        "later",
        "over",
        "paused",
        "progress",
        "results",
        "retrying",
        "ring",
        "running_of",
        "scheduled",
        "schedules",
        "scratch",
        "served",
        "since",
        "stats",
        "stopping",
        "sweep",
        "tasks",
        "turn",
        "unique",
        "waiting",
        "wake",
        "workers",
    )

    def __init__(self, prefix: str, queue: str) -> None:
        check_queue_name(queue)
        self._tag = f"{{{prefix}:{queue}}}:"
        self._name_ends()
        self.jobs = self._key("jobs")  # hash: id -> record, for every live job
        self.bands = self._key("bands")  # zset: band -> priority; the bands that have work
        self.ring = self._key("ring:")  # + band, zset: client -> turn; who has work, in the order of turns
        self.lane = self._key("lane:")  # + band:client, list: ids, first in first out
        self.lanes = self._key("lanes")  # zset: band:client -> since when its first job waits, ms
        self.turn = self._key("turn")  # string: the last turn number given out
        self.since = self._key("since")  # hash: id -> ms; waits since, where its id does not tell
        self.ghosts = self._key("ghosts")  # hash: id -> lane; cancelled, but still named in a lane
        self.scheduled = self._key("scheduled")  # zset: id -> due, ms
        self.later = self._key("later")  # zset: client -> next look, ms; + ":" and client, zset: id -> due, ms
        self.retrying = self._key("retrying")  # zset: id -> due, ms; those of scheduled that have failed
        self.schedules = self._key("schedules")  # hash: periodic jobs, name -> last slot, last job, definition, began
        self._name_what_is_known_of_jobs()

    def _name_what_is_known_of_jobs(self) -> None:
        self.workers = self._key("workers")  # zset: worker -> lease deadline, ms
        self.holders = self._key("holders")  # zset: worker -> when it signed on, ms; who may have a processing list
        self.running_of = self._key("running:")  # + worker, hash: id -> "attempt claimed_ms"
        self.stopping = self._key("stopping")  # hash: id -> how it is to stop; runs, and was asked to
        self.progress = self._key("progress")  # hash: id -> ms, and how far it is as JSON
        self.failures = self._key("failures")  # hash: id -> runs that failed
        self.crashes = self._key("crashes")  # hash: id -> runs that took their worker down
        self.errors = self._key("errors")  # hash: id -> the last failures, one JSON a line
        self.dead = self._key("dead")  # zset: id -> time of death, ms
        self.unique = self._key("unique:")  # + digest, string: id of the job that holds it, with a time limit
        self.digests = self._key("digests")  # hash: id -> until when it holds which digest, how long, and its heir
        self.wake = self._key("wake")  # zset: one token while there is something to claim
        self.due = self._key("due")  # zset: one token when something became due earlier than all before
        self.sweep = self._key("sweep")  # hash: contact, hold, high; all ms
        self.paused = self._key("paused")  # string: present while paused
        self.scratch = self._key("scratch")  # never exists; see the rules for scripts
        self._name_counters()

    def _name_counters(self) -> None:
        self.stats = self._key("stats:")  # + minute, hash: counters
        self.tasks = self._key("tasks:")  # + hour, hash: counters of each task, and how often runs took how long
        self.served = self._key("served:")  # + ten minutes, hash: client -> runs; and the time of all, µs
        self.busy = self._key("busy:")  # + ten minutes, zset: client -> how long its runs took together, µs

    def _name_ends(self) -> None:
        self.results = self._key("results")  # hash: id -> ms to keep, outcome
        self.finished = self._key("finished")  # zset: id -> when trim looks at it next, ms
        self.kept = self._key("kept")  # zset: id -> when it finished, ms; those of which an outcome is kept
        self.waiting = self._key("waiting")  # zset: id -> until when somebody waits for its end, ms
        self.over = self._key("over:")  # + id, list: a token for who waits, with a time limit

    def running(self, worker: str) -> bytes:
        """The processing list of one worker."""
        return self.running_of + worker.encode()

    def stats_of(self, minute: int) -> bytes:
        """The counters of one minute since 1970."""
        return self.stats + str(minute).encode()

    def _key(self, name: str) -> bytes:
        return (self._tag + name).encode()


class Keys:
    """All keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.queues = f"{prefix}:queues".encode()  # set: the names of the queues
        self.plan = f"{prefix}:plan".encode()  # hash: schedules that people made, which are off, and a version
        self.workers = f"{prefix}:workers".encode()  # zset: worker -> last beat, ms of its machine; an index of notes
        self._of_queue: dict[str, QueueKeys] = {}

    def of(self, queue: str) -> QueueKeys:
        """The keys of one queue. Raises InvalidTask for a bad name."""
        keys = self._of_queue.get(queue)
        if keys is None:
            keys = self._of_queue[queue] = QueueKeys(self.prefix, queue)
        return keys

    def errands(self, supervisor: str) -> bytes:
        """A token for a supervisor that is to look at what people want: a zset with a time limit."""
        return f"{self.prefix}:errands:{supervisor}".encode()

    def order(self, supervisor: str) -> bytes:
        """What people want of a supervisor: a string with a time limit."""
        return f"{self.prefix}:order:{supervisor}".encode()

    def worker(self, name: str) -> bytes:
        """What a worker is doing, for people: a hash with a time limit."""
        return f"{self.prefix}:worker:{name}".encode()
