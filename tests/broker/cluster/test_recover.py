"""A slot in two places: keys that are hidden on another master are found, and put together with those of the owner."""

from collections import Counter
from io import StringIO

import pytest
from django.test import override_settings

from django_rtq.broker.brokers import get_broker
from django_rtq.broker.settlement import Settlement
from django_rtq.exceptions import BrokerError
from django_rtq.inspector import cluster_slot
from django_rtq.inspector.cluster_slot import find_hidden_keys, masters, recover
from tests.management.commands import run
from tests.support.jobs import QUEUE, new_job
from tests.support.redis_cluster import SLOT, PrivateCluster, ask, owner_seen_by
from tests.worker.conservation import keys_of, places, records

WORKER = "w1"
NODES = """\
aa 10.0.0.1:7001@17001,one.example master - 0 1 1 connected 0-99 101 [100->-bb] [102-<-cc]
bb 10.0.0.2:7002@17002 myself,master - 0 1 2 connected 100 200-300
cc 2001:db8::1:7003@17003 master - 0 1 3 connected
dd 10.0.0.4:7004@17004 slave aa 0 1 1 connected
ee 10.0.0.5:7005@17005 master,fail - 0 1 1 disconnected 400
"""


@pytest.fixture(scope="module")
def movable():
    """A Cluster whose slot these tests move."""
    with PrivateCluster() as cluster:
        yield cluster


@pytest.fixture
def broker(movable):
    """The broker of this process, whose Redis is that Cluster."""
    with override_settings(RTQ={"REDIS": {"cluster": movable.addresses[:2]}, "LEASE_SECONDS": 60}):
        broker = get_broker()
        broker.sign_on([QUEUE], WORKER)
        yield broker
        broker.close()
    for server in movable.servers:
        ask(server, "FLUSHALL")


class OneServer:
    """The keys of one server, for what reads them by a client."""

    def __init__(self, server):
        self._server = server

    def scan_iter(self, match, count):
        return ask(self._server, "KEYS", match)

    def __getattr__(self, name):
        return lambda *arguments: ask(self._server, name.upper(), *arguments)


def fill(broker, begin):
    """Jobs in all places. Returns their ids."""
    jobs = [new_job(f"job-{begin + n}", client=f"c{n % 3}") for n in range(12)]
    broker.enqueue(QUEUE, jobs)
    (claimed,) = broker.claim(WORKER, [QUEUE], 4).claimed
    broker.settle(WORKER, QUEUE, Settlement(bury=[claimed.ids[0], 0, b'{"error_class":"E"}']))
    broker.settle(WORKER, QUEUE, Settlement(retry=[claimed.ids[1], 60_000, 1, b'{"error_class":"E"}', "c0"]))
    return {job.id for job in jobs}


def split(movable, most=None):
    """Move keys, and let the owner forget the move, as its replica would. Returns both masters."""
    source, target = movable.begin_move()
    movable.move_keys(source, target, most=most)
    ask(source, "CLUSTER SETSLOT", SLOT, "STABLE")
    return source, target


def test_masters_are_read_with_the_owner_first():
    owner, *others = masters(NODES, 100)
    assert (owner.id, owner.address, owner.is_moving) == ("bb", "10.0.0.2:7002", False)
    assert [node.address for node in others] == ["one.example:7001", "2001:db8::1:7003"]
    assert masters(NODES, 101)[0].id == "aa"
    assert masters(NODES.replace("[100->", "[101->"), 101)[0].is_moving
    with pytest.raises(BrokerError, match="No master of the Cluster has slot 400"):
        masters(NODES, 400)


def test_nothing_is_hidden_in_one_place_nor_while_the_slot_moves(broker, movable):
    fill(broker, 0)
    assert find_hidden_keys(broker) == []
    source, target = movable.begin_move()
    movable.move_keys(source, target, most=3)
    assert find_hidden_keys(broker) == []
    assert [hidden.count for hidden in find_hidden_keys(broker, even_if_moving=True)] == [3]
    movable.move_keys(source, target)
    movable.end_move(source, target)


@pytest.mark.parametrize("most", [1, 5, 9, 13, None])
def test_what_both_masters_have_is_united_and_each_job_is_in_one_place(broker, movable, most):
    job_ids = fill(broker, 0)
    source, target = split(movable, most)
    broker.sign_on([QUEUE], WORKER)
    more = [new_job(f"more-{n}", client=f"c{n}") for n in range(5)]
    job_ids |= {job.id for job in more}
    broker.enqueue(QUEUE, more)
    broker.claim(WORKER, [QUEUE], 2)

    (hidden,) = find_hidden_keys(broker)
    assert (hidden.owner.port, hidden.holder.port) == (source.port, target.port)
    recover(broker, hidden)

    united = OneServer(target)
    assert find_hidden_keys(broker, even_if_moving=True) == []
    assert owner_seen_by(source) == target.port
    assert records(united) == job_ids
    found = places(united)
    assert {job_id for job_id, names in found.items() if len(names) > 1} == set()
    lost = job_ids - found.keys()  # claims drop ids without a record: workers queue them again
    queued = {job_id for _ in range(20) for job_id, _ in broker.repair_jobs(QUEUE)}
    assert queued == lost
    assert {name for _, name in keys_of(united)} >= {"jobs", "dead", "scheduled", f"running:{WORKER}"}


def test_a_job_that_got_a_second_place_keeps_the_first(broker, movable):
    jobs = [new_job() for _ in range(4)]
    broker.enqueue(QUEUE, jobs)
    first, second, third, fourth = (job.id for job in jobs)
    keys = broker.keys.of(QUEUE)
    source, target = split(movable)
    ask(source, "HSET", keys.running("w9"), first, "1")
    ask(source, "ZADD", keys.dead, 1, first, 2, second)
    ask(source, "ZADD", keys.scheduled, 1, second, 2, third)
    ask(source, "RPUSH", keys.lane + b"0:", fourth, "new")

    recover(broker, find_hidden_keys(broker)[0])

    places_of_others = {first: ["running:w9"], second: ["dead"], third: ["scheduled"]}
    assert places(OneServer(target)) == places_of_others | {fourth: ["lane:0:"], "new": ["lane:0:"]}
    assert ask(target, "LRANGE", keys.lane + b"0:", 0, -1) == [fourth.encode(), b"new"]


def test_one_that_was_interrupted_goes_on(broker, movable, monkeypatch):
    job_ids = fill(broker, 0)
    _, target = split(movable, 5)
    moved, original = Counter(), cluster_slot._move

    def move(*args):
        moved["keys"] += 1
        if moved["keys"] == 4:
            raise BrokerError("lost")
        original(*args)

    monkeypatch.setattr(cluster_slot, "_move", move)
    with pytest.raises(BrokerError, match="lost"):
        recover(broker, find_hidden_keys(broker)[0])
    assert "Moved the slot there" not in run("rtq_cluster", "recover", "--dry-run").out

    assert f"127.0.0.1:{target.port} has 8 keys of the slot" in run("rtq_cluster", "recover").out
    assert records(OneServer(target)) == job_ids
    assert run("rtq_cluster", "recover").out == "The slot is in one place.\n"


def test_rtq_check_names_them_with_the_command(broker, movable):
    fill(broker, 0)
    _, target = split(movable, 2)
    with pytest.raises(SystemExit) as caught:
        run("rtq_check", out=(out := StringIO()))

    assert caught.value.code == 2
    assert f"critical slot_in_two_places: Keys are hidden on 127.0.0.1:{target.port} (2)" in out.getvalue()
    assert "python manage.py rtq_cluster recover" in out.getvalue()


def test_the_command_wants_a_cluster():
    with override_settings(RTQ={"REDIS": "redis://127.0.0.1:1/0"}):
        ran = run("rtq_cluster", "recover")
    assert (ran.code, ran.error) == (1, 'RTQ["REDIS"] is no Cluster.')
