"""Fills Redis as a large installation leaves it, with scripts of its own, in a minute.

Jobs, counters and workers get the keys that docs/redis.md describes. No broker is asked: enqueueing two million jobs
one by one would take too long.
"""

from __future__ import annotations

import time

import redis

QUEUES, DEAD_QUEUES, TASKS = 200, 20, 500
WAITING, DELAYED, CLIENTS, DEAD = 1_000_000, 1_000_000, 100_000, 100_000
HOSTS, PROCESSES, QUEUES_EACH = 50, 4, 40  # 200 processes, 8,000 sign-ons
AT_ONCE = 5000
TRACEBACK = "".join(f'  File \\"shop/tasks.py\\", line {n}, in step_{n}\\n    proceed()\\n' for n in range(30))

# ARGV: first number, how many, clients, tasks, now, and one more. Ids begin with the time in ms, and end in n.
_JOB = """
local tag, first, count, clients = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tasks, now = tonumber(ARGV[4]), tonumber(ARGV[5])
local function id_of(n) return string.format("%012x%020x", now - 3600000 + n, n) end
local function task_of(n) return "shop.orders.tasks.task_" .. n % tasks end
local function record_of(n, client)
  local body = '{"task":"' .. task_of(n) .. '","args":[' .. n .. ',42]}'
  return "0 3 " .. string.format("%.0f", now) .. " 0 " .. client .. "\\n" .. body
end
"""
_WAITING = (
    _JOB
    + """
for n = first, first + count - 1 do
  local id, client = id_of(n), "client-" .. n % clients
  redis.call("HSET", tag .. "jobs", id, record_of(n, client))
  redis.call("RPUSH", tag .. "lane:0:" .. client, id)
  redis.call("ZADD", tag .. "lanes", "NX", now - 3600000 + n, "0:" .. client)
  redis.call("ZADD", tag .. "ring:0", "NX", n, client)
end
redis.call("ZADD", tag .. "bands", 0, "0")
redis.call("SET", tag .. "turn", first + count)
redis.call("ZADD", tag .. "work_signal", 0, "work")
"""
)
_DELAYED = (
    _JOB
    + """
for n = first, first + count - 1 do
  local id, client, due = id_of(n), "client-" .. n % clients, now + 86400000 + n
  redis.call("HSET", tag .. "jobs", id, record_of(n, client))
  redis.call("ZADD", tag .. "scheduled", due, id)
  redis.call("ZADD", tag .. "scheduled_by_client", "LT", due, client)
  redis.call("ZADD", tag .. "scheduled_by_client:" .. client, due, id)
end
"""
)
_DEAD = (
    _JOB
    + """
local kinds = { "builtins.ValueError", "redis.exceptions.TimeoutError", "shop.errors.OutOfStock" }
for n = first, first + count - 1 do
  local id, client = id_of(n), "client-" .. n % clients
  redis.call("HSET", tag .. "jobs", id, record_of(n, client))
  redis.call("HSET", tag .. "failures", id, 3)
  local failure = '{"at":1,"error_class":"' .. kinds[n % 3 + 1] .. '","error":"no","traceback":"' .. ARGV[6] .. '"}'
  redis.call("HSET", tag .. "errors", id, failure)
  redis.call("ZADD", tag .. "dead", now - 3600000 + n, id)
end
"""
)
# ARGV: now; of each queue, as a month of work leaves it
_COUNTERS = """
local tag, now = KEYS[1], tonumber(ARGV[1])
local minute, hour = math.floor(now / 60000), math.floor(now / 3600000)
local function add(key, number)
  redis.call("HSET", tag .. key, "enqueued", 7, "succeeded", number, "failed", 7, "dead", 7, "run_ms", 7, "wait_ms", 7)
end
for each = minute - 2879, minute do add("stats:" .. each, each * 7919 % 5000) end
for each = hour - 743, hour - 1 do add("hours:" .. each, each * 7919 % 5000) end
local clock = { "rolled_up", hour, "promoted", now, "contact", now, "high", now }
redis.call("HSET", tag .. "clock", unpack(clock))
"""
# ARGV: hour, tasks; of 500 tasks the 10,000 names that an hour may have
_TASK_HOUR = """
for n = 0, tonumber(ARGV[2]) - 1 do
  local task, fields = "shop.orders.tasks.task_" .. n, {}
  local function add(kind, number) fields[#fields + 1], fields[#fields + 2] = kind .. " " .. task, number end
  for _, kind in ipairs({ "done", "failed", "retried", "run_us", "wait_ms" }) do add(kind, 45 + n) end
  for bucket = -45, -39 do add("r" .. bucket, 3) end
  for bucket = 20, 27 do add("w" .. bucket, 3) end
  redis.call("HSET", KEYS[1] .. "tasks:" .. ARGV[1], unpack(fields))
end
"""
# ARGV: ten minutes, clients
_CLIENT_RUNS = """
local tag, slice, clients = KEYS[1], ARGV[1], tonumber(ARGV[2])
for n = 0, math.min(clients, 9998) - 1 do
  redis.call("HSET", tag .. "client_runs:" .. slice, "client-" .. n, 3)
  redis.call("ZADD", tag .. "client_time:" .. slice, 1000 + n, "client-" .. n)
end
redis.call("HSET", tag .. "client_runs:" .. slice, "\\n", clients * 1000, "\\nruns", clients * 3)
"""
_RUNNING = (
    _JOB
    + """
local worker, client = ARGV[6], "client-" .. first % clients
redis.call("ZADD", tag .. "workers", now + 3600000, worker)
redis.call("ZADD", tag .. "signed_on", now - 60000 - 10000000000000, worker)
for n = first, first + count - 1 do
  local id = id_of(n)
  redis.call("HSET", tag .. "jobs", id, record_of(n, client))
  redis.call("HSET", tag .. "running:" .. worker, id, "1 " .. string.format("%.0f", now))
end
"""
)


def fill(server: redis.Redis, size: float) -> str:
    """Fill an empty Redis; `size` is the share of the jobs and clients. Returns the id of a job that waits."""
    now, clients = int(time.time() * 1000), max(10, int(CLIENTS * size))
    queues = max(DEAD_QUEUES + 10, int(QUEUES * min(1.0, size * 10)))
    names = [
        "flood",
        *(f"dead-{n}" for n in range(DEAD_QUEUES)),
        *(f"queue-{n}" for n in range(queues - DEAD_QUEUES - 1)),
    ]
    server.sadd("rtq:queues", *names)
    waiting, delayed, dead = (max(100, int(number * size)) for number in (WAITING, DELAYED, DEAD))
    _run(server, _WAITING, "flood", 0, waiting, clients, now)
    _run(server, _DELAYED, "flood", waiting, delayed, clients, now)
    for place in range(DEAD_QUEUES):
        _run(server, _DEAD, f"dead-{place}", 0, dead // DEAD_QUEUES, clients, now, TRACEBACK)
    counters, task_hour = server.register_script(_COUNTERS), server.register_script(_TASK_HOUR)
    runs = server.register_script(_CLIENT_RUNS)
    hour, slice_ = now // 3_600_000, now // 600_000
    for place, name in enumerate(names):
        counters(keys=[_tag(name)], args=[now])
        tasks = TASKS if name == "flood" else 4
        for each in range(hour - 49, hour + 1):
            task_hour(keys=[_tag(name)], args=[each, tasks])
        if place < 2:
            for each in range(slice_ - 6, slice_ + 1):
                runs(keys=[_tag(name)], args=[each, clients])
    _sign_on(server, names, clients, now)
    return f"{now - 3_600_000 + waiting // 2:012x}{waiting // 2:020x}"


def _tag(queue: str) -> str:
    return f"{{rtq:{queue}}}:"


def _run(
    server: redis.Redis, text: str, queue: str, first: int, count: int, clients: int, now: int, *more: str
) -> None:
    script = server.register_script(text)
    for start in range(first, first + count, AT_ONCE):
        most = min(AT_ONCE, first + count - start)
        script(keys=[_tag(queue)], args=[start, most, clients, TASKS, now, *more])


def _sign_on(server: redis.Redis, names: list[str], clients: int, now: int) -> None:
    """Each process serves some queues, and runs a job in two of them."""
    script = server.register_script(_RUNNING)
    number = 10_000_000
    with server.pipeline(transaction=False) as pipe:
        for process in range(HOSTS * PROCESSES):
            host, pid = f"host-{process // PROCESSES}", 100 + process
            worker = f"{host}:{pid}:benchmark"
            served = [names[(process + step * 5) % len(names)] for step in range(min(QUEUES_EACH, len(names)))]
            info = {
                "host": host,
                "pid": pid,
                "queues": ",".join(served),
                "slots": 2,
                "supervisor": 50,
                "kept_ms": 3_600_000,
            }
            pipe.hset(f"rtq:worker:{worker}", mapping={**info, "supervisor_name": f"{host}:50:benchmark"})
            pipe.pexpire(f"rtq:worker:{worker}", 3_600_000)
            pipe.zadd("rtq:workers", {worker: now})
            for place, queue in enumerate(served):
                script(
                    keys=[_tag(queue)], args=[number, 1 if place < 2 else 0, clients, TASKS, now, worker], client=pipe
                )
                number += 1
        pipe.execute()
