"""A private Redis Sentinel, and a master with a replica that it looks after."""

from contextlib import ExitStack, suppress

import redis

from testproject.redis_server import PrivateRedis, RedisDidNotStart
from tests.support.redis_cluster import ask
from tests.support.waiting import wait_until

DOWN_AFTER_MS = 2000


class PrivateSentinel(PrivateRedis):
    """A Sentinel that looks after one master, called mymaster."""

    def __init__(self, master_port):
        super().__init__()
        self._master_port = master_port

    def _command(self, binary):
        config = self.directory / "sentinel.conf"  # it wants a file that it can write to
        config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n"
            f"sentinel monitor mymaster 127.0.0.1 {self._master_port} 1\n"
            f"sentinel down-after-milliseconds mymaster {DOWN_AFTER_MS}\n"
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
    """A master with a replica, and a Sentinel, with the methods of a PrivateCluster."""

    def __init__(self):
        self._stack = ExitStack()

    def start(self):
        """Start all three."""
        master = self._stack.enter_context(PrivateRedis(appendonly=True))
        follow = ["--replicaof", f"127.0.0.1 {master.port}"]
        self.servers = [master, self._stack.enter_context(PrivateRedis(appendonly=True, arguments=follow))]
        self._sentinel = self._stack.enter_context(PrivateSentinel(master.port))
        wait_until(lambda: all(map(self.is_ready, self.servers)))
        return self

    def stop(self):
        """Stop all. May be called twice."""
        self._stack.close()

    @property
    def source(self):
        """What RTQ["REDIS"] is."""
        return {"sentinels": [["127.0.0.1", self._sentinel.port]], "service": "mymaster"}

    def owner(self):
        """The master, as the Sentinel sees it."""
        _, port = ask(self._sentinel, "SENTINEL", "get-master-addr-by-name", "mymaster")
        return next(server for server in self.servers if server.port == int(port))

    def is_ready(self, server):
        """Whether a server is the master, or the replica of the master and linked with it."""
        link = ask(server, "INFO", "replication")
        if server is self.owner():
            known = ask(self._sentinel, "SENTINEL", "replicas", "mymaster")
            return b"role:master" in link and b"connected_slaves:1" in link and len(known) == 1
        return b"master_link_status:up" in link and f"master_port:{self.owner().port}\r".encode() in link
