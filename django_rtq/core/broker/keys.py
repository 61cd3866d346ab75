"""The names of all keys, and nowhere else.

A call of a script declares the tag of a queue only, with which the names of all of its keys begin: Redis parses each
declared key of each queue, and 22 of them cost twice as much as appending their names. Scripts read names in one place
only: queue_of() in lua/lib/prelude.lua.

In a Redis Cluster all keys of the project have one hash tag, so that they are in one slot (D141). There a call declares
two names at least of which one never exists: while a slot moves key by key, the servers refuse such a call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from django_rtq.core.conf.queue_options import check_queue_name, is_queue_name


class Key:
    """A key of a queue, or with `per` the prefix of keys that end with a colon and that.

    On an instance of QueueKeys it is the name in Redis, as bytes, built on first use.
    """

    def __init__(self, kind: str, holds: str, *, per: str = "", name: str = "") -> None:
        self.kind = kind  # its type in Redis
        self.holds = holds  # member -> value and unit
        self.per = per  # what the names of these keys end with; "": it is one key
        self.name = name  # in Redis, behind the tag of the queue

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.name = (self.name or attribute) + (":" if self.per else "")

    @overload
    def __get__(self, keys: None, owner: type) -> Key: ...

    @overload
    def __get__(self, keys: QueueKeys, owner: type) -> bytes: ...

    def __get__(self, keys: QueueKeys | None, owner: type) -> Key | bytes:
        if keys is None:
            return self
        # The instance's own attribute is found before this one from now on.
        key = keys.__dict__[self.attribute] = keys.tag + self.name.encode()
        return key


class QueueKeys:
    """The keys of one queue. Scripts use the names of these attributes, too."""

    # Jobs
    jobs = Key("hash", "id -> record, of every live job and dead letter")
    failures = Key("hash", "id -> number of failed runs")
    crashes = Key("hash", "id -> number of runs that ended with the death of their worker")
    errors = Key("hash", "id -> the last failures, one JSON a line")
    progress = Key("hash", "id -> when (ms) and what progress the job reported, JSON")
    log = Key("list", "the last lines that a job logged; expires", per="id")
    logged = Key("list", "ids of jobs with lines that are over, and not dead, in the order of their ends; expires")
    # Only of jobs that have finished steps, were sent events, or wait for one: see lib/steps.lua
    step_jobs = Key("hash", "id -> until when it sleeps or waits, ms, and what for; or empty")
    steps = Key("hash", "the steps that a job has finished, and the events that were sent to it", per="id")
    # For jobs that were delayed, retried or requeued, and callers with a wrong clock: an entry for each is too much
    # memory.
    waiting_since = Key("hash", "id -> since when it waits, ms; only where its id does not tell")
    dead = Key("zset", "id -> time of death, ms")

    # Waiting for a worker. Each priority in use is a band with a ring and lanes of its own: bands are strict, turns are
    # taken within one (D20).
    bands = Key("zset", "band -> rank; the bands that have work")
    # By weight or time, clients stay until their turn comes, also without work (D86).
    ring = Key("zset", "client -> turn; the clients that have work, lowest turn first", per="band")
    lane = Key("list", "ids of one client, first in first out", per="band:client")
    # A zset, as its first entry gives the age of the oldest job; repair_lanes finds all lanes by it.
    lanes = Key("zset", "band:client -> since when its first job waits, ms")
    turn = Key("string", "the last turn number given out")
    # Claims skip these ids: LREM would take as long as the lane is, and block the server.
    cancelled_in_lane = Key("hash", "id -> lane; cancelled jobs whose id is still in a lane")
    work_signal = Key("zset", "one member while there is something to claim; workers block on it")
    # Jobs of paused tasks are moved aside, into `scheduled` (D99).
    paused = Key("hash", "queue -> since when it is paused (ms), who; task:<name> -> number, since when (ms), who")

    # Limits; they exist only where there are any
    limits = Key("hash", "queue, clients (default), client:<name>, paused:<name> -> the limit")
    paused_clients = Key("zset", "client -> since when it is paused, ms; an index of `limits`")
    waiting_limits = Key("hash", "queue, clients (default), client:<name> -> how many jobs may wait, or none")
    limit_sources = Key("hash", "run:<field of limits>, settings:<field> -> what that source says; the first wins")
    settings_stamp = Key("string", "whose `settings:` hold: when that worker started (ms), digest, project's version")
    running_counts = Key("hash", "queue, client:<name> -> number of running jobs")
    blocked = Key("hash", "client -> bands in which it waits until it may start a job; its turn in these rings is inf")
    rate_times = Key(
        "zset", "queue, client:<name> -> theoretical arrival time of its rate, ms and fractions; if not over"
    )
    job_times = Key("hash", "client:<name> -> its running jobs, and their time; queue, turn:<band>: see used_times.lua")
    next_starts = Key("zset", "queue, client:<name> -> when it may start a job, ms; those that only their rate stops")

    # Waiting for a time
    scheduled = Key("zset", "id -> due, ms")
    retrying = Key("zset", "id -> due, ms; the jobs of `scheduled` that have failed")
    # With it clients take turns when more jobs fall due than one call takes (D51).
    scheduled_by_client = Key(
        "zset", "client -> when promote looks at it next, ms; + ':' and client, zset: id -> due, ms"
    )
    due_signal = Key("zset", "one member when a job became due earlier than all others; schedulers block on it")
    schedules = Key("hash", "schedule -> last slot (ms), last job, digest of the definition, since when it counts (ms)")

    # Running
    workers = Key("zset", "worker -> end of its lease, ms")
    signed_on = Key(
        "zset",
        "worker -> when it signed on, ms - 10^13; those that may have a processing list",
    )
    runners = Key("hash", "id -> the worker that runs it, in a queue of many workers; '' -> how far it is, or ready")
    running_of = Key(
        "hash", "id -> attempt, time of the claim (ms), client; a processing list", per="worker", name="running"
    )
    cancel_requests = Key("hash", "id of a running job -> how it is to stop, and the outcome to store then")
    clock = Key(
        "hash",
        "contact, hold, high, promoted, rotated (ms), anchor: the time that scripts use, and when leases count; "
        "rolled_up: the first hour that is not in `hours`; counted (ms): when jobs were compared with all places; "
        "lost: how many are in no place, since when (ms); tended, checked (ms): when a supervisor looked after "
        "the queue, one that promotes, or not; first_end (ms): of the leases that it saw; "
        "repaired: the lane and worker where the next repair begins; run_id: of the server",
    )

    # Finished
    # Nearly all outcomes are dropped from the front of a list, which costs a fifth of a zset; trim moves what gets old.
    results = Key(
        "hash", "id -> when the job finished (ms), for how many ms its outcome is kept, and the outcome, JSON"
    )
    recent_results = Key("list", "ids of the latest outcomes, in the order in which the jobs finished")
    result_times = Key("zset", "id -> when it finished, ms; those with an outcome that trim has moved out of the list")
    result_expiry = Key("zset", "id -> when its outcome expires, ms; of the same jobs")
    # Two sets that rotate, instead of a time for each id (D7).
    finished = Key("set", "ids of the jobs that finished since the last rotation")
    finished_before = Key("set", "ids of the jobs that finished between the last two rotations")
    no_outcome = Key("list", "those ids of `finished` that have no outcome")
    no_outcome_before = Key("list", "those ids of `finished_before` that have no outcome")
    waiters = Key("zset", "id -> until when somebody waits for its end, ms")
    finished_signal = Key("list", "one member after the end of a job that somebody waits for; expires", per="id")

    # Unique jobs
    # Names the job. A job holds it only as long as it exists, so what a torn log leaves behind excludes nobody (D28).
    unique = Key("string", "id of the job that holds this digest; expires", per="digest")
    digests = Key("hash", "id -> until when it holds a digest, for how many ms, the digest, and its successor's id")

    # Metrics; all but `totals` expire
    stats = Key("hash", "counters of the queue", per="minute")
    hours = Key("hash", "the same, added up", per="hour")
    tasks = Key("hash", "counters of each task, and its histograms", per="hour, or v and version")
    done_runs = Key("hash", "task -> number of runs that succeeded", per="minute")
    failed_runs = Key("hash", "task -> number of runs that failed", per="minute, or v and version")
    failing = Key("hash", "task -> how many of its runs failed in a row, since when (ms), and how many succeeded since")
    run_versions = Key(
        "zset", 'version of the project -> when its first runs were counted, ms; the newest, only with RTQ["VERSION"]'
    )
    totals = Key("hash", "counter of the queue or of a task -> sum; minute, hour -> the first that is not in the sums")
    client_runs = Key("hash", "client -> number of runs; and the number and time (µs) of all runs", per="slice")
    client_time = Key("zset", "client -> how long its runs took together, µs", per="slice")

    # Only if a worker does not know the task of a job; expires
    unknown_tasks = Key(
        "hash", "task -> since and until when (ms), slice, jobs in it, jobs in the one before, the latest workers"
    )

    # Workflows: of members in any queue, how they ended, until their workflow knows it
    ended_members = Key("hash", "id -> dead, gone, open: requeued, or, if its end was missed, done and the outcome")
    # The rest of a workflow is of the default queue only. A step is a number; a part of one "step:place of its first
    # member".
    workflow = Key("hash", "what is known of a workflow and its steps: see workflow_steps.lua", per="id")
    workflows = Key("zset", "id -> when something happened in the workflow last, ms")
    workflow_states = Key(
        "zset",
        "id and name -> since when it is in its state, ms, and 10^13 times 0 to 4: running, blocked, succeeded, …",
    )
    stuck_workflows = Key("zset", "id and name -> when something happened in it last, ms; nobody knows how jobs ended")
    workflow_keys = Key("hash", "name, newline, key -> id of the latest workflow with that key")
    workflow_steps = Key("zset", "step -> number of its first member", per="id")
    open_steps = Key("set", "steps that are not over", per="id")
    dead_steps = Key("set", "steps that are blocked by dead members", per="id")
    step_waits = Key("set", "steps that a step waits for", per="id:step")
    members = Key("string", "bitmap: members of a step that ended so: done, dead or gone", per="id:step:how")
    waiting_members = Key("hash", "part -> calls of its members, which have no jobs yet", per="id")
    starting_parts = Key("zset", "part -> number of its first member; those that are to be enqueued", per="id")
    step_results = Key("hash", "number of a member -> its outcome, JSON; of steps whose results others take", per="id")
    workflow_signal = Key("list", "one member after the end of a workflow; expires", per="id")
    unstarted = Key("zset", "id -> when it came so far, ms; workflows with parts to enqueue, or that are not whole yet")

    # Of the default queue only, and only if somebody listens; expires
    incidents = Key("hash", "id -> state (seen, open, closed), token of the call, JSON; '' -> the last view")

    # Of the default queue only, and only with RTQ["VERSION"]; they expire
    deploys = Key("list", "when a version of the project became the latest (ms), and the version; the newest first")
    versions = Key("hash", "version of the project -> when a supervisor reported it last, ms")

    scratch = Key("none", "never exists: scripts delete it to be allowed to write to a full server")

    def __init__(self, tag: str, guard: str = "") -> None:
        self.tag = tag.encode()  # what their names begin with; no key itself
        self.guard = guard.encode()  # another name that never exists; empty where calls do not need it

    def running(self, worker: str) -> bytes:
        """The processing list of one worker."""
        return self.running_of + worker.encode()

    def log_of(self, job_id: str) -> bytes:
        """The lines that one job logged."""
        return self.log + job_id.encode()


#: By the names that scripts use. A script of one worker also has `running`, the processing list of that worker.
QUEUE_KEYS = {name: key for name, key in vars(QueueKeys).items() if isinstance(key, Key)}


def read_queue_names(members: Iterable[bytes]) -> list[str]:
    """The queues in the set of their names, sorted. Another program may have added what is no name: it is left out."""
    return sorted(filter(is_queue_name, (member.decode(errors="replace") for member in members)))


def cluster_tag(prefix: str) -> str:
    """What all keys of a project begin with in a Cluster: it leads to their slot.

    The numbers are that of the shard, and of a salt. A shard but the first has its tag as its prefix: tag_of_shard().
    """
    return prefix if prefix.startswith("{") else f"{{{prefix}.0.0}}"


class Keys:
    """All keys under one prefix."""

    def __init__(self, prefix: str, *, in_cluster: bool = False) -> None:
        self.in_cluster = in_cluster
        self.prefix = f"{cluster_tag(prefix)}:" if in_cluster else prefix  # of keys that are of no queue
        self.queues = f"{self.prefix}:queues".encode()  # set: the names of the queues
        self.format = f"{self.prefix}:format".encode()  # string: the format of all keys, and an id of this data
        self.data_lost = f"{self.prefix}:data_lost".encode()  # string: when workers found another id there, ms; expires
        self.plan = f"{self.prefix}:plan".encode()  # hash: schedules that people made, which are off, and a version
        self.workers = (
            f"{self.prefix}:workers".encode()
        )  # zset: worker -> last beat, ms of its machine; an index of notes
        self._of_queue: dict[str, QueueKeys] = {}

    def of(self, queue: str) -> QueueKeys:
        """The keys of one queue. Raises InvalidTask for a bad name."""
        keys = self._of_queue.get(queue)
        if keys is None:
            check_queue_name(queue)
            own = QueueKeys(f"{self.prefix}{queue}:", f"{self.prefix}:") if self.in_cluster else None
            keys = self._of_queue[queue] = own or QueueKeys(f"{{{self.prefix}:{queue}}}:")
        return keys

    def control_signal(self, supervisor: str) -> bytes:
        """A token for a supervisor that is to look at what people want: a zset with a time limit."""
        return f"{self.prefix}:control_signal:{supervisor}".encode()

    def control(self, supervisor: str) -> bytes:
        """What people want of a supervisor: a string with a time limit."""
        return f"{self.prefix}:control:{supervisor}".encode()

    def worker(self, name: str) -> bytes:
        """What a worker is doing, for people: a hash with a time limit."""
        return f"{self.prefix}:worker:{name}".encode()
