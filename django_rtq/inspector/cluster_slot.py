"""A slot in two places: its master died while the slot moved key by key, and the keys that had moved are hidden.

Before Redis 8.4 and Valkey 8 a replica does not know of a move. When it is promoted, it serves the rest as if that were
all, and the keys that had moved stay on another master, where no command finds them. recover() ends the move: the keys
of the new owner go to the other master, those that both have are united, and the slot goes with them. Meanwhile the
servers refuse all scripts, as in every move (D141), and clients send them again. It may be repeated at any point.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from django_rtq.broker.broker import Broker
from django_rtq.broker.keys import Keys
from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.redis.commands import Argument, Command
from django_rtq.exceptions import BrokerError, BrokerUnavailable

STATE_SECONDS, POLL_SECONDS = 15.0, 0.1  # to hear of the successor of a master, which takes some seconds
KEYS_AT_ONCE = 100
MEMBERS_AT_ONCE = 1000  # of one key, in one command
#: Where a job may be, by the key behind the name of its queue; a job that is in several is left in the first of these.
PLACES = ("running", "dead", "scheduled", "lane")
_READS = {"running": ("HKEYS",), "dead": ("ZRANGE", 0, -1), "scheduled": ("ZRANGE", 0, -1), "lane": ("LRANGE", 0, -1)}
_REMOVES: dict[str, tuple[Argument, ...]] = {"running": ("HDEL",), "dead": ("ZREM",), "scheduled": ("ZREM",)}


class ClusterNode(NamedTuple):
    """A master of a Cluster."""

    id: str
    host: str
    port: int
    has_slot: bool
    is_moving: bool  # our slot, to another master; only of the one that says so

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenKeys:
    """Keys of our slot on a master that does not own it."""

    owner: ClusterNode
    holder: ClusterNode
    count: int


def find_hidden_keys(broker: Broker, *, even_if_moving: bool = False) -> list[HiddenKeys]:
    """Keys of our slot that no command finds. None where no Cluster is, and while the slot moves, unless that is asked.

    Asks all masters. None, too, if the user may not ask. Raises BrokerError.
    """
    if (slot := _slot_of(broker)) is None:
        return []
    nodes = broker.redis.execute_each([("CLUSTER", "NODES")], resend=True)[0]
    if isinstance(nodes, BrokerError):
        return []
    owner, *others = masters(nodes.decode(), slot)
    if owner.is_moving and not even_if_moving:
        return []
    counts = [(node, _ask(broker, node, [("CLUSTER", "COUNTKEYSINSLOT", slot)])[0]) for node in others]
    return [
        HiddenKeys(owner=owner, holder=node, count=count)
        for node, count in counts
        if not isinstance(count, BrokerError) and count
    ]


def masters(nodes: str, slot: int) -> list[ClusterNode]:
    """The masters in a reply to CLUSTER NODES, the one that has the slot first. Raises BrokerError if there is none."""
    found = []
    for line in nodes.splitlines():
        name, address, flags, *rest = line.split()
        states = set(flags.split(","))
        if "master" not in states or states & {"fail", "handshake", "noaddr"}:
            continue
        place, _, hostname = address.partition(",")
        host, _, port = place.partition("@")[0].rpartition(":")
        ranges = [part.partition("-") for part in rest[5:] if not part.startswith("[")]
        found.append(
            ClusterNode(
                id=name,
                host=hostname.partition(",")[0] or host,
                port=int(port),
                has_slot=any(int(first) <= slot <= int(last or first) for first, _, last in ranges),
                is_moving=any(part.startswith(f"[{slot}->-") for part in rest[5:]),
            )
        )
    found.sort(key=lambda node: not node.has_slot)
    if not found or not found[0].has_slot:
        raise BrokerError(f"No master of the Cluster has slot {slot}: start one that had it, or its replica.")
    return found


def recover(broker: Broker, hidden: HiddenKeys) -> int:
    """Unite the keys of the owner and the holder, which owns the slot then. Returns how many keys the owner had.

    Needs a user who may use CLUSTER SETSLOT, DUMP and RESTORE. Raises BrokerError: then the slot is still moving, and
    the next call goes on.
    """
    slot = _slot_of(broker)
    assert slot is not None
    owner, holder = _open(broker, hidden.owner), _open(broker, hidden.holder)
    try:
        setting: Command = ("CLUSTER", "SETSLOT", slot)
        # While it imports the slot, it does not hear that the dead master has a successor, and says that all is down.
        holder.execute_one((*setting, "STABLE"))
        for server, node in ((owner, hidden.owner), (holder, hidden.holder)):
            _await_cluster(server, node)
        holder.execute_one((*setting, "IMPORTING", hidden.owner.id))
        owner.execute_one((*setting, "MIGRATING", hidden.holder.id))  # from now on no script runs
        moved = 0
        while names := owner.execute_one(("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE)):
            for name in names:
                _move(owner, holder, name)
            moved += len(names)
        count = holder.execute_one(("CLUSTER", "COUNTKEYSINSLOT", slot))
        _leave_each_in_one_place(holder, broker.keys, holder.execute_one(("CLUSTER", "GETKEYSINSLOT", slot, count)))
        for server in (holder, owner):
            server.execute_one((*setting, "NODE", hidden.holder.id))
        return moved
    finally:
        owner.close()
        holder.close()


def _slot_of(broker: Broker) -> int | None:
    cluster = broker.connection_settings.cluster
    return None if cluster is None else int(cluster.service)


def _open(broker: Broker, node: ClusterNode) -> RedisClient:
    """A client of this node, and of no other."""
    return RedisClient(broker.connection_settings.of_node(node.host, node.port).command_pool(role="command"))


def _ask(broker: Broker, node: ClusterNode, commands: Sequence[Command]) -> list[Any]:
    client = _open(broker, node)
    try:
        return client.execute_each(commands, resend=True)
    finally:
        client.close()


def _await_cluster(server: RedisClient, node: ClusterNode) -> None:
    deadline = time.monotonic() + STATE_SECONDS
    while b"cluster_state:ok" not in server.execute_one(("CLUSTER", "INFO"), resend=True):
        if time.monotonic() > deadline:
            raise BrokerUnavailable(f"{node.address} says that the Cluster is down. No key was moved: try it later.")
        time.sleep(POLL_SECONDS)


def _asking(holder: RedisClient, *commands: Command) -> list[Any]:
    """The replies of a master to whom the slot moves."""
    sent = chain.from_iterable((("ASKING",), command) for command in commands)
    return holder.execute(list(sent), resend=True)[1::2]


def _move(owner: RedisClient, holder: RedisClient, name: bytes) -> None:
    """Move one key. If both have it, it is what both have; the owner's is newer."""
    dump, expiry_ms = owner.execute([("DUMP", name), ("PTTL", name)], resend=True)
    if dump is not None:
        restore: Command = ("RESTORE", name, max(expiry_ms, 0), dump)
        _, reply = holder.execute_each([("ASKING",), restore], resend=True)
        if isinstance(reply, BrokerError):
            if "BUSYKEY" not in str(reply):
                raise reply
            _unite(owner, holder, name, restore)
        owner.execute_one(("UNLINK", name), resend=True)


def _unite(owner: RedisClient, holder: RedisClient, name: bytes, restore: Command) -> None:
    kind = owner.execute_one(("TYPE", name), resend=True)
    (old_kind,) = _asking(holder, ("TYPE", name))
    if kind == b"string" or kind != old_kind:
        _asking(holder, (*restore, "REPLACE"))
        return
    if kind == b"list":
        (old,) = _asking(holder, ("LRANGE", name, 0, -1))
        known = set(old)
        members = [[m] for m in owner.execute_one(("LRANGE", name, 0, -1), resend=True) if m not in known]
    else:
        members = _members(owner, kind, name)
    add = {b"list": "RPUSH", b"set": "SADD", b"zset": "ZADD", b"hash": "HSET"}[kind]
    for start in range(0, len(members), MEMBERS_AT_ONCE):
        _asking(holder, (add, name, *chain.from_iterable(members[start : start + MEMBERS_AT_ONCE])))


def _members(owner: RedisClient, kind: bytes, name: bytes) -> list[list[Any]]:
    """The arguments that add each member of a hash, a set or a sorted set."""
    scan = {b"set": "SSCAN", b"zset": "ZSCAN", b"hash": "HSCAN"}[kind]
    cursor, flat = b"0", []
    while True:
        cursor, part = owner.execute_one((scan, name, cursor, "COUNT", MEMBERS_AT_ONCE), resend=True)
        flat += part
        if cursor == b"0":
            break
    if kind == b"set":
        return [[member] for member in flat]
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [[score, member] if kind == b"zset" else [member, score] for member, score in pairs]


def _leave_each_in_one_place(holder: RedisClient, keys: Keys, names: Sequence[bytes]) -> None:
    """A job whose place was hidden may have got another one meanwhile. Workers release what they do not run."""
    by_queue: defaultdict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for queue, place, name in _places(keys, names):
        by_queue[queue].append((place, name))
    for found in by_queue.values():
        known: set[bytes] = set()
        for place, name in sorted(found, key=lambda pair: PLACES.index(pair[0])):
            verb, *rest = _READS[place]
            (ids,) = _asking(holder, (verb, name, *rest))
            twice = [job_id for job_id in ids if job_id in known]
            known.update(ids)
            if place == "lane":
                _asking(holder, *(("LREM", name, 1, job_id) for job_id in twice))
            elif twice:
                _asking(holder, (*_REMOVES[place], name, *twice))


def _places(keys: Keys, names: Sequence[bytes]) -> Iterator[tuple[str, str, bytes]]:
    """Queue, place and name of each key that holds jobs."""
    for name in names:
        text = name.decode(errors="replace")
        if text.startswith(keys.prefix):
            queue, _, rest = text[len(keys.prefix) :].partition(":")
            place = rest.partition(":")[0]
            if place in PLACES:
                yield queue, place, name
