"""What the server says of itself, as far as the safety of jobs goes."""

from __future__ import annotations

from dataclasses import dataclass, field

_NEARLY_FULL = 0.9  # of maxmemory


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
    #: What endangers jobs: "evicts" (it deletes jobs when full), "volatile" (no append-only log: a restart loses jobs),
    #: "nearly_full", "log_failed", "snapshot_failed" (it could not write to its disk), "replica" (read only).
    warnings: list[str] = field(default_factory=list)


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
        warnings=_warnings(told),
    )


def _warnings(told: dict[str, str]) -> list[str]:
    used, most = _number(told, "used_memory") or 0, _number(told, "maxmemory") or 0
    wrong = {
        "evicts": told.get("maxmemory_policy", "noeviction") != "noeviction",
        "volatile": told.get("aof_enabled") == "0",
        "nearly_full": most > 0 and used > most * _NEARLY_FULL,
        "log_failed": told.get("aof_last_write_status", "ok") != "ok",
        "snapshot_failed": told.get("rdb_last_bgsave_status", "ok") != "ok",
        "replica": told.get("role") == "slave",
    }
    return [name for name, is_wrong in wrong.items() if is_wrong]


def _number(told: dict[str, str], name: str) -> int | None:
    value = told.get(name, "")
    return int(value) if value.isdigit() else None
