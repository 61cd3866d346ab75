"""Servers with TLS and with the users of docs/: a single one, and a Cluster whose slot moves."""

import re
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.exceptions import BrokerError, BrokerRefused
from testproject.redis_server import PrivateRedis, free_port
from tests.app import tasks
from tests.support.apps import readers_of
from tests.support.redis_cluster import PrivateCluster, ask
from tests.support.tls import Certificate, skipped_without_tls
from tests.support.waiting import PATIENCE, wait_until

DOCS = Path(__file__).parents[3] / "docs"


def users_of(page):
    """What the users of a page may do, by their names."""
    return dict(re.findall(r"^ACL SETUSER (\S+) (.*)$", (DOCS / page).read_text(), re.MULTILINE))


def connections_of_ours(server):
    """The addresses of a server where clients of ours are connected."""
    clients = ask(server, "CLIENT LIST").decode().splitlines()
    return {client.split("laddr=")[1].split()[0] for client in clients if " name=rtq:" in client}


@pytest.fixture
def certificate(tmp_path):
    return Certificate(tmp_path)


@pytest.fixture
def use():
    """Let this process use that Redis. What it used before is closed."""
    entered = []

    def use(source):
        leave()
        entered.append(override_settings(RTQ={"REDIS": source}))
        entered[-1].enable()

    def leave():
        if entered:
            get_broker().close()
            entered.pop().disable()

    yield use
    leave()


def test_a_cluster_with_tls_and_users_whose_slot_moves(certificate, use, rtq_worker):
    with skipped_without_tls(), PrivateCluster(certificate=certificate) as cluster:
        for server in cluster.servers:
            for name, rules in users_of("scaling.md").items():
                ask(server, "ACL SETUSER", name, "reset", *rules.split())
        rtq_worker("--processes", 2, is_ready=False, REDIS=cluster.source_of("rtq", "secret"))
        use(cluster.source_of("rtq-producer", "secret"))
        assert tasks.note.delay("before").get(timeout=PATIENCE) == "before"
        waiting = tasks.note.using(run_after=0.5).delay("waiting")

        source, target = cluster.move()

        assert waiting.get(timeout=PATIENCE) == "waiting"
        assert async_to_sync(tasks.note.adelay)("after").get(timeout=PATIENCE) == "after"
        wait_until(lambda: connections_of_ours(target) == {f"127.0.0.1:{target.cluster_port}"})
        use(cluster.source_of("rtq-reader", "secret"))
        assert readers_of().find(waiting.id).state == "succeeded"
        wait_until(lambda: not connections_of_ours(source))


def test_a_server_with_tls_that_asks_for_certificates(certificate, use, rtq_worker):
    port = free_port()
    with skipped_without_tls(), PrivateRedis(arguments=certificate.arguments(port, auth_clients="yes")) as server:
        ((name, rules),) = users_of("redis.md").items()
        ask(server, "ACL SETUSER", name, "reset", *rules.split())
        address = f"rediss://{name}:secret@127.0.0.1:{port}/0"
        trusting = f"{address}?ssl_ca_certs={certificate.path}"
        ours = f"{trusting}&ssl_certfile={certificate.path}&ssl_keyfile={certificate.key}"
        rtq_worker("--processes", 2, is_ready=False, REDIS=ours)
        use(ours)
        assert tasks.note.delay("x").get(timeout=PATIENCE) == "x"
        assert connections_of_ours(server) == {f"127.0.0.1:{port}"}
        use(trusting)
        with pytest.raises(BrokerError):
            tasks.note.delay("refused")
        use(address)
        with pytest.raises(BrokerRefused, match="certificate verify failed"):
            tasks.note.delay("refused")
