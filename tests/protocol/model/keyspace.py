"""Reads all keys of a server in one round trip, and checks the invariants of a queue."""

from collections import Counter
from typing import Any

from tests.protocol.model.used import rounded

_DUMP = """
local taken = {}
for _, key in ipairs(redis.call("KEYS", "*")) do
  local kind, value = redis.call("TYPE", key).ok, nil
  if kind == "string" then value = redis.call("GET", key)
  elseif kind == "list" then value = redis.call("LRANGE", key, 0, -1)
  elseif kind == "set" then value = redis.call("SMEMBERS", key)
  elseif kind == "hash" then value = redis.call("HGETALL", key)
  else value = redis.call("ZRANGE", key, 0, -1, "WITHSCORES") end
  taken[#taken + 1] = { key, kind, redis.call("TTL", key), value }
end
return taken
"""
_COUNTED_SECONDS = {"stats": 172_800, "hours": 2_678_400, "tasks": 180_000, "failed_runs": 600, "failing": 86_400}
# What a drained queue still has: times, turns, counters, and ids of finished jobs until their time is over.
FINISHED = {"finished", "finished_before", "no_outcome", "no_outcome_before"}
FIXED = {
    "runners",
    "turn",
    "clock",
    "due_signal",
    "work_signal",
    "workers",
    "signed_on",
    "logged",
    "failing",
    *FINISHED,
}
# What lies beside the record of a job, and goes with it.
BESIDE_JOBS = (
    *("failures", "crashes", "errors", "waiting_since", "retrying"),
    *("digests", "cancel_requests", "progress", "step_jobs"),
)
_KINDS = {
    "string": {"turn", "unique", "members"},
    "set": {"queues", "finished", "finished_before", "open_steps", "dead_steps", "step_waits"},
    "list": {"lane", "log", "logged", "recent_results", "no_outcome", "no_outcome_before", "workflow_signal"},
    "hash": {
        "jobs",
        "waiting_since",
        "cancelled_in_lane",
        *("running", "runners"),
        "failures",
        "crashes",
        "errors",
        "results",
        "clock",
        "stats",
        "hours",
        "tasks",
        *("failed_runs", "failing"),
        "totals",
        "digests",
        "cancel_requests",
        "progress",
        "paused",
        *("limits", "waiting_limits", "limit_sources", "running_counts", "blocked", "job_times"),
        *("workflow", "waiting_members", "step_results", "ended_members", "steps", "step_jobs"),
    },
    "zset": {
        *("bands", "ring", "lanes", "scheduled", "retrying", "scheduled_by_client", "workers", "signed_on", "dead"),
        *("result_times", "result_expiry"),
        *("work_signal", "due_signal", "rate_times", "next_starts", "paused_clients"),
        *("workflows", "workflow_states", "stuck_workflows", "workflow_steps", "starting_parts", "unstarted"),
    },
}


def read_keyspace(redis: Any) -> dict[str, Any]:
    """Key -> value. Rings are told by their order alone. Asserts what is true of every key."""
    taken = {}
    for key, kind, ttl, value in redis.eval(_DUMP, 0):
        name = key.decode()
        family = name.rpartition("}:")[2].removeprefix("rtq:").partition(":")[0]
        if name == "rtq:format" or (family == "steps" and ttl >= 0):  # the latter: of a job that is over, for people
            continue
        assert family in _KINDS[kind.decode()], f"{name} is a {kind.decode()}"
        if family in _COUNTED_SECONDS:
            assert 0 < ttl <= _COUNTED_SECONDS[family]
        elif family in ("unique", "log", "logged", "workflow_signal"):
            assert ttl >= 0, f"{name} stays for ever"
        else:
            assert ttl == -1, f"{name} goes away"
        taken[name] = _plain(kind, value, family)
    return taken


def _plain(kind: bytes, value: Any, family: str) -> Any:
    if kind == b"string":
        return value.decode("latin-1")
    texts = [item.decode() for item in value]
    if kind == b"set":
        return set(texts)
    if kind == b"list":
        return texts
    if family == "ring":
        return texts[::2]
    if family in ("waiting_since", "running_counts"):
        texts[1::2] = [text.lstrip("0") for text in texts[1::2]]  # of many, the first has zeros in front
    if family == "job_times":
        texts[1::2] = [rounded(map(float, text.split())) for text in texts[1::2]]
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return dict(pairs) if kind == b"hash" else {member: round(float(score), 2) for member, score in pairs}


def problems(keyspace: dict[str, Any], tag: str) -> list[str]:
    """What no verb may leave behind in a queue, found without the model."""
    queue = {name.removeprefix(tag): value for name, value in keyspace.items() if name.startswith(tag)}
    jobs, cancelled = queue.get("jobs", {}), queue.get("cancelled_in_lane", {})
    lanes = {name[5:]: ids for name, ids in queue.items() if name.startswith("lane:")}
    running = {name[8:]: ids for name, ids in queue.items() if name.startswith("running:")}
    places: Counter[str] = Counter([*queue.get("scheduled", {}), *queue.get("dead", {})])
    for ids in (*lanes.values(), *running.values()):
        places.update(job_id for job_id in ids if job_id not in cancelled)
    found = [f"{job_id} is in {n} places" for job_id, n in places.items() if n != 1]
    found += [f"{job_id} is in no place" for job_id in jobs if job_id not in places]
    found += [f"{job_id} has no record" for job_id in places if job_id not in jobs]
    for name in BESIDE_JOBS:
        found += [f"{name} of {job_id} is left" for job_id in queue.get(name, {}) if job_id not in jobs]
    runs = {job_id for ids in running.values() for job_id in ids}
    requests = queue.get("cancel_requests", {})
    found += [f"{job_id} is to stop, and does not run" for job_id in requests if job_id not in runs]
    known = {job_id for name in FINISHED for job_id in queue.get(name, ())}
    found += [f"{job_id} is finished and lives" for job_id in known if job_id in jobs]
    older, recent = queue.get("result_times", {}), queue.get("recent_results", ())
    results = queue.get("results", {})
    found += [f"{job_id} has a result, and is in no index" for job_id in results if job_id not in {*older, *recent}]
    if older.keys() != queue.get("result_expiry", {}).keys():
        found.append("the two indexes of older results differ")
    found += [f"{job_id} is not in its lane" for job_id, lane in cancelled.items() if job_id not in lanes.get(lane, ())]
    found += [f"{worker} runs jobs and has no lease" for worker in running if worker not in queue.get("workers", {})]
    for lane in lanes:
        band, _, client = lane.partition(":")
        is_blocked = band in queue.get("blocked", {}).get(client, "").split()
        if client not in queue.get(f"ring:{band}", ()) or not (is_blocked or band in queue.get("bands", {})):
            found.append(f"the lane {lane} is in no ring")
        if lane not in queue.get("lanes", {}):
            found.append(f"no audit would find the lane {lane}")
    return found + _uncounted(queue) + _unheld(queue) + _unlooked(queue) + _unfound(queue) + _misnamed(queue, running)


def startable(keyspace: dict[str, Any], tag: str) -> list[str]:
    """Lanes whose first job any idle worker may start now, found without the model. Rates are left to the model."""
    queue = {name.removeprefix(tag): value for name, value in keyspace.items() if name.startswith(tag)}
    limits, running = queue.get("limits", {}), queue.get("running_counts", {})
    if queue.get("paused") or "rate=" in " ".join(limits.values()) or not _has_room(limits, running, "queue"):
        return []
    found = []
    for band in queue.get("bands", {}):
        for client in queue.get(f"ring:{band}", ()):
            lane = queue.get(f"lane:{band}:{client}", [])
            may_start = (
                f"paused:{client}" not in limits and band not in queue.get("blocked", {}).get(client, "").split()
            )
            if any(job_id in queue["jobs"] for job_id in lane) and may_start and _has_room(limits, running, client):
                found.append(f"{band}:{client}")
    return found


def _has_room(limits: dict[str, str], running: dict[str, str], name: str) -> bool:
    own = "queue" if name == "queue" else f"client:{name}"
    values = limits.get(own, "") + " " + ("" if own == "queue" else limits.get("clients", ""))
    most = next((value[12:] for value in values.split() if value.startswith("max_running=")), "none")
    return most == "none" or int(running.get(own, 0)) < int(most)


def _uncounted(queue: dict[str, Any]) -> list[str]:
    """Jobs that crashed more often than allowed, and live (I9)."""
    found, jobs = [], queue.get("jobs", {})
    for job_id in queue.get("crashes", {}).keys() & jobs.keys():
        crashes, allowed = queue["crashes"][job_id], int(jobs[job_id].split(" ")[1])
        if int(crashes) > allowed + (job_id in queue.get("dead", {})):
            found.append(f"{job_id} crashed {crashes} times, {allowed} allowed")
    return found


def _misnamed(queue: dict[str, Any], running: dict[str, Any]) -> list[str]:
    """What the hash of runners says, and the processing lists do not."""
    runners = queue.get("runners", {})
    by_job = {"": "ready"} | {job_id: worker for worker, ids in running.items() for job_id in ids}
    is_wrong = runners.get("") == "ready" and runners != by_job
    return [f"{runners} run, and {running}"] if is_wrong else []


def _unheld(queue: dict[str, Any]) -> list[str]:
    """Digests that keep others out, and no living job holds them."""
    notes, alive = queue.get("digests", {}), queue.get("jobs", {}).keys() - queue.get("dead", {}).keys()
    held = {name[7:]: job_id for name, job_id in queue.items() if name.startswith("unique:")}
    return [
        f"{job_id} does not hold {digest}"
        for digest, job_id in held.items()
        if job_id not in alive or notes.get(job_id, "").split(" ")[2:3] != [digest]
    ]


def _unlooked(queue: dict[str, Any]) -> list[str]:
    """Jobs that wait for their time, and would be promoted by that alone; clients that are looked at too late."""
    index = {name[20:]: ids for name, ids in queue.items() if name.startswith("scheduled_by_client:")}
    looks, scheduled = queue.get("scheduled_by_client", {}), queue.get("scheduled", {})
    listed = {job_id: due for ids in index.values() for job_id, due in ids.items()}
    found = [] if listed == scheduled else [f"the index says {listed}, and {scheduled} are scheduled"]
    found += [f"{client} is looked at, and has nothing" for client in looks if client not in index]
    return found + [f"nobody looks at {client} in time" for client in index if client not in looks]


def _unfound(queue: dict[str, Any]) -> list[str]:
    """What jobs remember, and nobody deletes with them."""
    remembered = {name[6:] for name, fields in queue.items() if name.startswith("steps:") and "aside" not in fields}
    return [f"nobody finds the steps of {job_id}" for job_id in remembered - queue.get("step_jobs", {}).keys()]


def differences(actual: dict[str, Any], expected: dict[str, Any]) -> str:
    """The keys that are not as they should be."""
    wrong = sorted(key for key in {*actual, *expected} if actual.get(key) != expected.get(key))
    return "\n".join(f"{key}\n  is        {actual.get(key)}\n  should be {expected.get(key)}" for key in wrong)
