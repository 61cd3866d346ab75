"""One rtq_worker serves all shards, and one that is down holds up no other."""

import asyncio
import itertools
import json
import os
import signal
import threading
from contextlib import suppress

import pytest

from django_rtq import BrokerUnavailable, workflow
from django_rtq.core.jobs.job import shard_in
from tests.app import tasks
from tests.app.step_tasks import walk
from tests.app.workflow_steps import add_up, double, double_more, report
from tests.core.worker.processes import WorkerProcess
from tests.scale.shards.conftest import client_of, waiting
from tests.support.forked_commands import ForkedCommand
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def worker(servers, shards, journal, tmp_path):
    """Start a worker for both shards: worker("--processes", 2)."""
    started, numbers = [], itertools.count(1)

    def start(*arguments, is_ready=True, **options):
        environment = environment_of(servers, tmp_path, **options)
        found = WorkerProcess(arguments, environment, tmp_path / f"worker-{next(numbers)}.log")
        started.append(found)
        if is_ready:
            workers = "{rtq:default}:workers"
            wait_until(lambda: all(client.exists(workers) for client in shards) or not found.is_running)
        return found

    yield start
    for each in started:
        each.end()


def environment_of(servers, folder, **options):
    return {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RTQ_DATABASE": str(folder / "db.sqlite3"),
        "RTQ_TEST_OPTIONS": json.dumps({"SHARD_SERVERS": [server.url for server in servers], **options}),
    }


def enqueue(number, shard):
    return tasks.note.using(client=client_of(shard)).delay(f"{shard}-{number}")


def test_a_worker_serves_all_shards_and_stops_with_one_signal(worker, shards, journal, tmp_path):
    health = tmp_path / "health"
    running = worker("--processes", 2, "--health-file", health)
    handles = [enqueue(number, shard) for number in range(20) for shard in (0, 1)]

    assert [handle.get(60) for handle in handles] == [f"{n}-{i}" for i in range(20) for n in (0, 1)]
    wait_until(health.exists)
    running.kill(signal.SIGTERM)
    assert running.wait() == 0
    assert [waiting(client) for client in shards] == [0, 0]
    assert not any(client.zcard("{rtq:default}:workers") for client in shards)
    assert "Traceback" not in running.log


class Producers:
    """A thread for each shard that enqueues jobs for one of its clients until it is told to stop."""

    def __init__(self):
        self.accepted = [[], []]
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(shard,), daemon=True) for shard in (0, 1)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info):
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, shard):
        for number in itertools.count():
            with suppress(BrokerUnavailable):  # it may be stored
                enqueue(number, shard)
                self.accepted[shard].append(f"{shard}-{number}")
            if self._is_over.wait(0.01):
                return


def go_on(shard, journal, producers):
    """Whether jobs of a shard are accepted and end from now on."""
    accepted = len(producers.accepted[shard])
    wait_until(lambda: len(producers.accepted[shard]) > accepted + 20)
    journal.wait("end", producers.accepted[shard][accepted + 20])


@pytest.mark.parametrize("outage", ["killed", "frozen"])
def test_a_shard_that_is_down_under_load_loses_nothing_and_holds_up_no_other(outage, worker, servers, shards, journal):
    worker("--processes", 2)
    with Producers() as producers:
        for shard in (0, 1):
            go_on(shard, journal, producers)
        servers[1].kill() if outage == "killed" else servers[1].pause()
        go_on(0, journal, producers)
        go_on(0, journal, producers)
        servers[1].start() if outage == "killed" else servers[1].resume()
        for shard in (0, 1):
            go_on(shard, journal, producers)

    expected = {name for names in producers.accepted for name in names}
    assert len(expected) > 100
    wait_until(lambda: expected <= set(journal.names("end")), 120)


def test_one_shard_only(worker, shards, journal):
    for shard in (0, 1):
        enqueue(1, shard)

    assert worker("--burst", "--shard", 1, is_ready=False).wait() == 0
    assert journal.names("end") == ["1-1"]
    assert waiting(shards[0]) == 1


def test_a_supervisor_that_is_killed_is_replaced(worker, shards, journal):
    running = worker()
    enqueue(1, 1).get(60)
    os.kill(running.children[1], signal.SIGKILL)
    wait_until(lambda: "is replaced" in running.log)

    assert enqueue(2, 1).get(60) == "1-2"
    assert enqueue(2, 0).get(60) == "0-2"


@pytest.mark.parametrize("shard", [0, 1])
def test_workflows_and_jobs_with_steps_are_in_the_shards_of_their_clients(worker, shards, journal, shard):
    worker(TASK_MODULES=["tasks", "step_tasks", "workflow_steps"])
    with workflow("sum") as flow:  # its shard is known when the last step is added
        doubles = flow.map(double, [1, 2, 3])
        total = flow.add(add_up, doubles.results)
        more = flow.add(double_more, [4, 5])
        flow.after(more).add(report.using(client=client_of(shard)), "total", total.result)
    walked = [walk.using(client=client_of(shard)).delay(f"walk {shard}") for shard in (0, 1)]

    flow.handle.get(60)
    assert asyncio.run(flow.handle.aget(60)) is None
    assert list(flow.handle.results("add_up")) == [12, 18]
    assert [len(client.keys("*:workflow:*")) for client in shards] == [1 - shard, shard]
    assert [step.task.rpartition(".")[2] for step in flow.handle.progress().steps if step.number > 3] == [
        "double",
        "add_up",
        "report",
    ]
    assert [shard_in(job.id) for job in walked] == [0, 1]
    assert [[step["name"] for step in job.get(60)] for job in walked] == [
        [f"walk {shard} {number}" for number in range(3)] for shard in (0, 1)
    ]


def test_a_scheduler_serves_all_shards(worker, servers, shards, journal, tmp_path):
    worker("--no-scheduler")
    scheduler = ForkedCommand(
        ["rtq_scheduler"], {**os.environ, **environment_of(servers, tmp_path)}, tmp_path / "scheduler.log"
    )
    try:
        delayed = [tasks.note.using(client=client_of(n), run_after=0.1).delay(f"{n}") for n in (0, 1)]
        assert [handle.get(60) for handle in delayed] == ["0", "1"]
    finally:
        scheduler.send_signal(signal.SIGTERM)
    assert scheduler.wait(30) == 0
