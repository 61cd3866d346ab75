"""A private Redis Cluster: masters, and replicas if wanted, on free ports and with temporary folders."""

import re
import socket
from contextlib import ExitStack

import redis
from redis.crc import key_slot

from testproject.redis_server import PrivateRedis, RedisDidNotStart, free_port
from tests.support.waiting import wait_until

SLOTS = 16384
NODE_TIMEOUT_MS = 2000
BUS = 10_000  # a node listens on its port and on this port behind it
PORTS_TRIED = 20
REDIS_MOVE, VALKEYS_MOVE = "cluster|migration", "cluster|migrateslots"  # of a slot as a whole
TAG = b"{rtq.0.0}"  # of all keys of a project in a Cluster


class PrivateCluster:
    """Masters that share all slots. With `alone`, the first one has that port, our slot and no other.

    With a certificate, they and their clients speak TLS; the port of a server is a second one, without it. A `patient`
    one does not take a server for dead that has nothing from a loaded machine for seconds.
    """

    def __init__(
        self, *, masters=3, replicas=0, alone=None, announced=None, appendonly=False, certificate=None, patient=False
    ):
        timeout_ms = 15_000 if patient else NODE_TIMEOUT_MS
        self._arguments = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(timeout_ms)]
        # The port of a proxy, which clients are told instead of that of the first server.
        self._announced = announced
        self._masters, self._replicas, self._alone = masters, replicas, alone
        self._appendonly = appendonly or replicas > 0
        self._certificate = certificate
        self._stack = ExitStack()
        self.servers = []  # masters first

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *exc_info):
        self.stop()

    def start(self):
        """Start the servers, and wait until each knows all slots."""
        for _ in range(self._masters * (1 + self._replicas)):
            self.add_server()
        masters = self.servers[: self._masters]
        for i, (server, slots) in enumerate(zip(masters, self._shares(), strict=True)):
            ask(server, "CLUSTER SET-CONFIG-EPOCH", i + 1)
            ask(server, "CLUSTER ADDSLOTS", *slots)
        for server in self.servers[1:]:
            ask(masters[0], "CLUSTER MEET", "127.0.0.1", server.cluster_port)
        wait_until(lambda: all(len(nodes(server)) == len(self.servers) for server in self.servers))
        for i, server in enumerate(self.servers[self._masters :]):
            ask(server, "CLUSTER REPLICATE", node_id(masters[i % len(masters)]))
        wait_until(lambda: all(self.is_ready(server) for server in self.servers))
        return self

    def add_server(self):
        """Start one more, which knows no other yet."""
        self.servers.append(self._new_server())
        return self.servers[-1]

    def stop(self):
        """Stop all servers. May be called twice."""
        self._stack.close()

    @property
    def addresses(self):
        """Those of all servers, as RTQ["REDIS"] names them."""
        return [f"127.0.0.1:{server.cluster_port}" for server in self.servers]

    @property
    def source(self):
        """What RTQ["REDIS"] is."""
        return f"redis+cluster://{','.join(self.addresses[:2])}"

    def source_of(self, user, password):
        """What it is for a user of a Cluster with TLS."""
        who = {"username": user, "password": password}
        return {"cluster": self.addresses[:2], **who, **self._certificate.trusted}

    def owner(self):
        """The master of our slot, as most that run see it."""
        ports = [owner_seen_by(server) for server in self.servers if server.is_running]
        port = max(ports, key=ports.count)
        return next((server for server in self.servers if server.port == port and server.is_running), None)

    def begin_move(self):
        """Begin to move our slot to another master. Returns both masters."""
        source, target = self._next_move()
        ask(target, "CLUSTER SETSLOT", SLOT, "IMPORTING", node_id(source))
        ask(source, "CLUSTER SETSLOT", SLOT, "MIGRATING", node_id(target))
        return source, target

    @staticmethod
    def move_keys(source, target, most=None, between=lambda: None):
        """Move keys of our slot one by one: `most` of them, or until there are none."""
        moved = 0
        while (most is None or moved < most) and (names := ask(source, "CLUSTER GETKEYSINSLOT", SLOT, 1)):
            to = ("127.0.0.1", target.cluster_port, "", 0, 60_000)
            try:
                ask(source, "MIGRATE", *to, "KEYS", *names)
            except redis.ResponseError as error:  # as redis-cli solves it
                if "BUSYKEY" not in str(error):
                    raise
                ask(source, "MIGRATE", *to, "REPLACE", "KEYS", *names)
            moved += 1
            between()

    @staticmethod
    def end_move(source, target):
        """Our slot belongs to its new master from now on."""
        for server in (target, source):
            ask(server, "CLUSTER SETSLOT", SLOT, "NODE", node_id(target))

    def move(self, between=lambda: None):
        """Move our slot to another master, key by key. Returns both masters."""
        source, target = self.begin_move()
        self.move_keys(source, target, between=between)
        self.end_move(source, target)
        return source, target

    def move_as_a_whole(self):
        """Let the servers move our slot at one stroke, if they can. Returns both masters."""
        source, target = self._next_move()
        if knows(source, VALKEYS_MOVE):
            ask(source, "CLUSTER MIGRATESLOTS", "SLOTSRANGE", SLOT, SLOT, "NODE", node_id(target))
        else:
            ask(target, "CLUSTER MIGRATION", "IMPORT", SLOT, SLOT)
        wait_until(lambda: self.owner() is target)
        return source, target

    def _next_move(self):
        """The master of our slot, and one that it can move to."""
        source = self.owner()
        masters = (s for s in self.servers if s.is_running and "master" in nodes(s)[node_id(s)])
        return source, next(server for server in masters if server is not source)

    def _new_server(self):
        for _ in range(PORTS_TRIED):
            port, arguments = port_with_bus(), self._arguments
            if self._certificate:
                arguments = [*arguments, "--tls-cluster", "yes", *self._certificate.arguments(port)]
            elif self._alone and not self.servers:
                port, bus = self._alone, str(self._alone + BUS)
                announced = ["--cluster-announce-port", str(self._announced), "--cluster-announce-bus-port", bus]
                arguments = [*arguments, *announced]
            server = PrivateRedis(appendonly=self._appendonly, arguments=arguments)
            self._stack.callback(server.stop)
            server.cluster_port = port
            if not self._certificate:
                server.port = port
            try:
                return server.start()
            except RedisDidNotStart as error:  # another program took the port, or it starts with none
                problem = error
        raise problem

    def _shares(self):
        alone = [[SLOT]] if self._alone else []
        rest, masters = [slot for slot in range(SLOTS) if [slot] not in alone], self._masters - len(alone)
        return alone + [rest[i * len(rest) // masters : (i + 1) * len(rest) // masters] for i in range(masters)]

    def is_ready(self, server):
        """Whether a server serves, and sees all replicas."""
        replicas = sum("slave" in flags for flags in nodes(server).values())
        is_linked = b"role:master" in (link := ask(server, "INFO", "replication")) or b"master_link_status:up" in link
        is_ok = b"cluster_state:ok" in ask(server, "CLUSTER INFO")
        return is_ok and is_linked and replicas == self._masters * self._replicas


SLOT = key_slot(TAG)


def ask(server, *command):
    """The reply of one server, as it is."""
    with redis.Redis(port=server.port, protocol=2, socket_timeout=10) as client:
        client.response_callbacks.clear()
        return client.execute_command(*command[0].split(), *command[1:])


def knows(server, *names):
    """Whether a server has one of these commands."""
    return any(ask(server, "COMMAND INFO", *names))


def node_id(server):
    """The name of a server in its Cluster."""
    return ask(server, "CLUSTER MYID").decode()


def nodes(server):
    """The flags of all servers that one knows, by their names."""
    lines = (line.split() for line in ask(server, "CLUSTER NODES").decode().splitlines())
    return {line[0]: line[2] for line in lines if "handshake" not in line[2]}


def offset_of(server):
    """How much of the log of its master a server has."""
    return int(re.search(rb"master_repl_offset:(\d+)", ask(server, "INFO", "replication"))[1])


def owner_seen_by(server):
    """The port of the master of our slot, as one server sees it; None: it knows of none."""
    for first, last, master, *_ in ask(server, "CLUSTER SLOTS"):
        if first <= SLOT <= last:
            return master[1]
    return None


def port_with_bus():
    """A port that no program listens on, nor on the one behind it that nodes use among themselves."""
    while True:
        port = free_port()
        if port + BUS > 65_535:
            port -= 2 * BUS
        try:
            for each in (port, port + BUS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
        except OSError:
            continue
        return port
