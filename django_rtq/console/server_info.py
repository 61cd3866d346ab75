"""What INFO of the Redis server tells, and warnings of settings and states that endanger jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django_rtq.core.validation import gettext_noop

_NEARLY_FULL, _FULL = 0.9, 0.98  # of maxmemory; a command that was refused gives its memory back
_MANY_CONNECTIONS = 0.8  # of maxclients: a deploy starts new processes before the old ones are gone


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDetails:
    """The Redis server. Where it does not tell (managed ones forbid INFO, and so may ACLs), a field is None or ""."""

    now_ms: int  # its clock
    is_known: bool = False  # whether it answered INFO
    name: str = ""  # redis or valkey
    version: str = ""
    used_memory: int | None = None  # bytes
    max_memory: int | None = None  # bytes; 0: no limit
    eviction_policy: str = ""
    connections: int | None = None
    max_connections: int | None = None  # maxclients
    #: What endangers jobs: "evicts" (it deletes jobs when full), "volatile" (no append-only log: a restart loses jobs),
    #: "full" (it refuses jobs), "nearly_full", "connections" (nearly as many as it accepts), "log_failed",
    #: "snapshot_failed" (it could not write to its disk), "replica" (read only).
    warnings: list[str] = field(default_factory=list)
    refused: int = 0  # commands for which there was no memory, since the server started
    data_lost_ms: int | None = None  # when workers noticed that it has lost its data; None: not in the last day


def read_server(info: bytes, now_ms: int) -> ServerDetails:
    """The reply to INFO; b"" when there was none."""
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    told = {name: value for name, colon, value in lines if colon}
    if not told:
        return ServerDetails(now_ms=now_ms)
    return ServerDetails(
        now_ms=now_ms,
        is_known=True,
        name=told.get("server_name") or "redis",
        version=told.get("valkey_version") or told.get("redis_version", ""),
        used_memory=_number(told, "used_memory"),
        max_memory=_number(told, "maxmemory"),
        eviction_policy=told.get("maxmemory_policy", ""),
        connections=_number(told, "connected_clients"),
        max_connections=_number(told, "maxclients"),
        warnings=_warnings(told),
        refused=int(told.get("errorstat_OOM", "").removeprefix("count=") or 0),
    )


def _warnings(told: dict[str, str]) -> list[str]:
    refused = told.get("errorstat_OOM")  # since the server started: it was full, and is until there is room again
    used, most = _number(told, "used_memory") or 0, _number(told, "maxmemory") or 0
    connections, max_connections = _number(told, "connected_clients") or 0, _number(told, "maxclients") or 0
    # With a policy for all keys it deletes some instead, and "evicts" says so.
    may_refuse = most > 0 and not told.get("maxmemory_policy", "").startswith("allkeys")
    is_full = may_refuse and (used >= most * _FULL or (refused and used > most * _NEARLY_FULL))
    wrong = {
        "evicts": told.get("maxmemory_policy", "noeviction") != "noeviction",
        "volatile": told.get("aof_enabled") == "0",
        "full": is_full,
        "nearly_full": most > 0 and used > most * _NEARLY_FULL and not is_full,
        "connections": max_connections > 0 and connections > max_connections * _MANY_CONNECTIONS,
        "log_failed": told.get("aof_last_write_status", "ok") != "ok",
        "snapshot_failed": told.get("rdb_last_bgsave_status", "ok") != "ok",
        "replica": told.get("role") == "slave",
    }
    return [name for name, is_wrong in wrong.items() if is_wrong]


def _number(told: dict[str, str], name: str) -> int | None:
    value = told.get(name, "")
    return int(value) if value.isdigit() else None


#: What each of ServerDetails.warnings means, and its cure.
PROBLEMS = {
    "evicts": gettext_noop(
        "Redis deletes keys, and with them jobs, when it is full (maxmemory-policy %(policy)s). Set maxmemory-policy "
        "to noeviction."
    ),
    "volatile": gettext_noop(
        "Redis does not keep an append-only file: jobs may be lost when it restarts. Set appendonly yes."
    ),
    "full": gettext_noop(
        "Redis is full (%(used)s of %(most)s) and refuses new jobs. Raise its maxmemory, or let workers catch up."
    ),
    "nearly_full": gettext_noop("Redis is nearly full: %(used)s of %(most)s."),
    "connections": gettext_noop(
        "Redis has %(connections)s connections and accepts %(max_connections)s (maxclients). An rtq_worker needs 4, "
        "and 2 for each of its processes. Raise maxclients, or start fewer processes with more --concurrency."
    ),
    "log_failed": gettext_noop("Redis could not write its append-only file: check its disk."),
    "snapshot_failed": gettext_noop("Redis could not save its snapshot: check its disk."),
    "replica": gettext_noop(
        "This Redis server is a replica and cannot accept jobs. Configure the address of the master."
    ),
}


def problems_of(info: bytes) -> Iterator[str]:
    """What each warning means, by the reply to INFO."""
    server = read_server(info, 0)
    values = problem_values(server)
    for name in server.warnings:
        yield PROBLEMS[name] % values


def problem_values(server: ServerDetails) -> dict[str, str]:
    """The values that PROBLEMS speak of."""
    # With them come templates, which no worker needs.
    from django.template.defaultfilters import filesizeformat
    from django.utils.formats import number_format

    def grouped(count: int | None) -> str:
        return "\N{EN DASH}" if count is None else number_format(count, force_grouping=True)

    return {
        "policy": server.eviction_policy,
        "used": filesizeformat(server.used_memory or 0),
        "most": filesizeformat(server.max_memory or 0),
        "connections": grouped(server.connections),
        "max_connections": grouped(server.max_connections),
    }
