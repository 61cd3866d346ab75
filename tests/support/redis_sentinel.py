"""Private Redis Sentinels, and a master with a replica that they look after."""

from contextlib import ExitStack, suppress

import redis

from testproject.redis_server import PrivateRedis, RedisDidNotStart
from tests.support.redis_cluster import ask
from tests.support.waiting import wait_until

SENTINELS, QUORUM = 3, 2
DOWN_AFTER_MS = 2000
FAILOVER_TIMEOUT_MS = 10_000  # twice this is the pause after an election that nobody won


class PrivateSentinel(PrivateRedis):
    """A Sentinel that looks after one master, called mymaster."""

    def __init__(self, master_port):
        super().__init__()
        self._master_port = master_port

    def _command(self, binary):
        config = self.directory / "sentinel.conf"  # it wants a file that it can write to
        config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n"
            f"sentinel monitor mymaster 127.0.0.1 {self._master_port} {QUORUM}\n"
            f"sentinel down-after-milliseconds mymaster {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout mymaster {FAILOVER_TIMEOUT_MS}\n"
        )
        return [binary, str(config), "--sentinel"]

    def _wait_until_ready(self, process):
        wait_until(lambda: self._answers(process))

    def _answers(self, process):
        if process.poll() is not None:
            raise RedisDidNotStart(self._log())
        with redis.Redis(port=self.port, protocol=2) as client, suppress(redis.ConnectionError):
            return client.info("server")["process_id"] == process.pid


class PrivateReplication:
    """A master with a replica, and three Sentinels, with the methods of a PrivateCluster."""

    def __init__(self):
        self._stack = ExitStack()

    def start(self):
        master = self._stack.enter_context(PrivateRedis(appendonly=True))
        follow = ["--replicaof", "127.0.0.1", str(master.port)]
        self.servers = [master, self._stack.enter_context(PrivateRedis(appendonly=True, arguments=follow))]
        self._sentinels = [self._stack.enter_context(PrivateSentinel(master.port)) for _ in range(SENTINELS)]
        wait_until(lambda: all(map(self.is_ready, self.servers)))
        return self

    def stop(self):
        """Stop all. May be called twice."""
        self._stack.close()

    @property
    def source(self):
        """What RTQ["REDIS"] is."""
        return {"sentinels": [["127.0.0.1", each.port] for each in self._sentinels], "service": "mymaster"}

    def owner(self):
        """The master, as the first Sentinel sees it."""
        return self._seen_by(self._sentinels[0])

    def is_ready(self, server):
        """Whether all agree that a server is the master with its replica, or the replica of the master and linked."""
        if len({self._seen_by(sentinel) for sentinel in self._sentinels}) > 1:
            return False
        link = ask(server, "INFO", "replication")
        if server is self.owner():
            return b"role:master" in link and b"connected_slaves:1" in link and all(map(self._is_told, self._sentinels))
        return b"master_link_status:up" in link and f"master_port:{self.owner().port}\r".encode() in link

    def _seen_by(self, sentinel):
        _, port = ask(sentinel, "SENTINEL", "get-master-addr-by-name", "mymaster")
        return next(server for server in self.servers if server.port == int(port))

    @staticmethod
    def _is_told(sentinel):
        """Whether it knows the replica and the other Sentinels."""
        replicas, others = (ask(sentinel, "SENTINEL", what, "mymaster") for what in ("replicas", "sentinels"))
        return (len(replicas), len(others)) == (1, SENTINELS - 1)
