"""The Redis server of the tests: a client with helpers, and the settings of the brokers that use it."""

from contextlib import contextmanager

import redis as redis_py

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.fault_proxy import Fault

UNREACHABLE = "redis://127.0.0.1:1/0"
LEASE_SECONDS = 60.0  # longer than any test: leases end when a test says so


class Redis(redis_py.Redis):
    """A client of the tests' own server, beside the connections of the broker."""

    proxy = None

    def drop_connection(self, moment, around=b"EVALSHA"):
        """Cut the broker's connection at its next script: "before" it arrives, or "after" it ran."""
        self.proxy.arm(Fault(moment, around))

    def answer_once(self, answer, around=b"EVALSHA"):
        """Answer the broker's next script with these bytes, and keep it from the server."""
        self.proxy.arm(Fault("answer", around, answer))

    def stay_silent_once(self, around=b"EVALSHA"):
        """Never answer the broker's next script."""
        self.proxy.arm(Fault("silence", around))

    @contextmanager
    def full_memory(self):
        """As if not one byte more could be stored."""
        self.config_set("maxmemory", 1)
        try:
            yield
        finally:
            self.config_set("maxmemory", 0)

    def load_scripts(self):
        """Let the server know all scripts, so that the next call is the call itself."""
        known = self.script_exists(*[script.sha for script in SCRIPTS.values()])
        with self.pipeline(transaction=False) as pipe:
            for script, is_known in zip(SCRIPTS.values(), known, strict=True):
                if not is_known:
                    pipe.script_load(script.text)
            pipe.execute()

    def waiting_workers(self):
        """The connections on which processes of workers wait for jobs at this moment."""
        return [
            client for client in self.client_list() if client["name"] == "rtq:worker-wait" and "b" in client["flags"]
        ]

    def clients_of_ours(self):
        """The connections of brokers that are open."""
        return [client for client in self.client_list() if client["name"].startswith("rtq:")]
