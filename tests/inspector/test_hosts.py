"""Hosts: their processes, commands for all of them, and when a host is drained."""

from dataclasses import replace

import pytest

from django_rtq.broker.control import WorkerCommand, send_command
from django_rtq.broker.worker_info import worker_info_commands
from django_rtq.inspector.details import WorkerDetails
from django_rtq.inspector.hosts import HostDetails, hosts_of
from tests.support.jobs import QUEUE, claimed_job, let_lapse, settle


def process(name="a:1", **details):
    """A process that is quiet and has said so."""
    known = {"host": "a", "pid": 1, "queues": [QUEUE], "running": [], "last_seen_seconds": 1.0}
    counts = {"last_claim_seconds": None, "jobs_done": 0, "is_quiet": True, "is_resting": True}
    return WorkerDetails(name=name, **{**known, **counts, **details})


DRAINED = HostDetails(name="a", workers=[process(), process("a:2")], commands={})


def test_a_host_is_drained_if_all_its_processes_rest_and_have_no_job():
    assert DRAINED.is_drained
    assert replace(DRAINED, commands={"s1": WorkerCommand.QUIET, "s2": WorkerCommand.STOP}).is_drained


@pytest.mark.parametrize(
    "change",
    [
        {"workers": []},
        {"unknown": 1},
        {"commands": None},
        {"commands": {"s1": WorkerCommand.QUIET, "s2": WorkerCommand.WORK}},
        {"workers": [process(), process(is_resting=False)]},
        {"workers": [process(), process(held=1)]},
        {"workers": [process(), process(lease_left_seconds=-1.0)]},
    ],
)
def test_as_long_as_anything_is_not_known_it_is_not_drained(change):
    assert not replace(DRAINED, **change).is_drained


def test_processes_are_grouped_by_host_and_those_without_one_come_last():
    workers = [process("x", host="", pid=3), process("b:2", host="b", pid=2), process("a:4", supervisor=9), process()]

    found = hosts_of(workers)

    assert [(host.name, [worker.name for worker in host.workers]) for host in found] == [
        ("a", ["a:1", "a:4"]),
        ("b", ["b:2"]),
        ("", ["x"]),
    ]
    assert [host.unknown for host in found] == [1, 1, 1]
    assert [host.rtq_workers for host in found] == [2, 1, 1]
    assert hosts_of([process()])[0].unknown == 0


def test_figures_are_added_up():
    host = HostDetails(
        name="a",
        workers=[
            process(slots=2, held=3, memory_bytes=5, version="1", up_seconds=7.0),
            process(slots=1, is_resting=False, version="2", lease_left_seconds=-1.0),
        ],
    )

    assert (host.slots, host.busy, host.held, host.memory_bytes, host.up_seconds) == (3, 0, 3, 5, 7.0)
    assert (host.versions, host.quiet, host.lost) == (["1", "2"], 1, 1)


def note(broker, name, **found):
    """Sign on a worker, with what its supervisor stores about it."""
    broker.sign_on([QUEUE], name)
    broker.enqueue(QUEUE, [])
    info = {"host": "a", "pid": 7, "queues": QUEUE, "supervisor_name": f"{name}-supervisor", **found}
    broker.redis.execute(list(worker_info_commands(broker.keys, {name: info})))


def test_a_host_is_read_with_what_it_runs_and_what_it_was_told(broker, inspector):
    note(broker, "w1", resting=1, quiet=1)
    note(broker, "w2", host="b")
    assert inspector.hosts.get("a").is_drained
    job = claimed_job(broker, worker="w1")

    host = inspector.hosts.get("a")

    assert ([worker.name for worker in host.workers], host.held) == (["w1"], 1)
    assert [each.id for each in host.running] == [job.id]
    assert not host.is_drained
    settle(broker, "ack", job, worker="w1")
    assert inspector.hosts.get("a").is_drained
    send_command(broker, "w1-supervisor", WorkerCommand.WORK)
    assert not inspector.hosts.get("a").is_drained
    send_command(broker, "w1-supervisor", WorkerCommand.QUIET)
    assert inspector.hosts.get("a").is_drained
    broker.sign_on([QUEUE], "newcomer")
    assert (inspector.hosts.get("a").unknown, inspector.hosts.get("a").is_drained) == (1, False)
    broker.sign_off([QUEUE], "newcomer")
    let_lapse(broker, "w1")
    assert not inspector.hosts.get("a").is_drained
    assert inspector.hosts.get("nowhere").workers == []


@pytest.mark.parametrize(("verb", "command"), [("quiet", "quiet"), ("wake", "work"), ("stop", "stop")])
def test_all_workers_of_a_host_are_told(redis, broker, inspector, verb, command):
    for name in ("w1", "w2"):
        note(broker, name)
    note(broker, "w3", supervisor_name="w2-supervisor")
    note(broker, "elsewhere", host="b")

    for _ in range(2):
        assert getattr(inspector.hosts, verb)("a") == ["w1-supervisor", "w2-supervisor"]

    told = {name: redis.get(broker.keys.control(f"{name}-supervisor")) for name in ("w1", "w2", "elsewhere")}
    assert told == {"w1": command.encode(), "w2": command.encode(), "elsewhere": None}
    assert getattr(inspector.hosts, verb)("nowhere") == []
