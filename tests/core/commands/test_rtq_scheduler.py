"""rtq_scheduler as a process: everything that happens because time has passed, and no job."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from django_rtq.exceptions import ConfigurationError
from tests.support.commands import run
from tests.support.jobs import QUEUE, claimed_job, let_lapse, queued_job, retrying_job
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent.parent.parent


class SchedulerProcess:
    """One `manage.py rtq_scheduler`."""

    def __init__(self, arguments, environment, log):
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "testproject" / "manage.py"), "rtq_scheduler", *arguments],
                env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **environment},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self):
        return self._log.read_text()

    def stop(self, signum):
        """Returns its exit code. It has less time than its loops wait when nothing wakes them."""
        self.process.send_signal(signum)
        return self.process.wait(PATIENCE)


@pytest.fixture
def rtq_scheduler(redis, redis_server, broker, tmp_path):
    """Start a scheduler: rtq_scheduler("--queues", "a,b", SCHEDULES={…}). It is ended with the test."""
    started = []

    def start(*arguments, **options):
        scheduler = SchedulerProcess(
            arguments,
            {
                "RTQ_REDIS_URL": redis_server.url,
                "RTQ_TEST_OPTIONS": json.dumps(
                    {"LEASE_SECONDS": 2.0, "TASK_MODULES": ["tasks", "long_waits"], **options}
                ),
            },
            tmp_path / f"scheduler-{len(started)}.log",
        )
        started.append(scheduler)
        wait_until(lambda: "scheduler starts" in scheduler.log or scheduler.process.poll() is not None)
        wait_until(lambda: any(c["cmd"] == "bzpopmin" for c in redis.clients_of_ours()) or started[-1].process.poll())
        return scheduler

    yield start
    for scheduler in started:
        if scheduler.process.poll() is None:
            scheduler.process.kill()
        scheduler.process.wait()


def is_queued(redis, job, *, queue=QUEUE, client=""):
    return redis.lpos(f"{{rtq:{queue}}}:lane:0:{client}", job.id) is not None


def test_it_does_what_has_to_be_done_and_ends_at_a_signal(redis, broker, rtq_scheduler):
    scheduler = rtq_scheduler("--queues", f"{QUEUE},low")
    lost = claimed_job(broker, client="lost", worker="killed")
    due = queued_job(broker, due="+300", queue="low")
    retry = retrying_job(broker, wait_ms=200)
    let_lapse(broker, "killed")

    wait_until(lambda: is_queued(redis, due, queue="low"))
    wait_until(lambda: is_queued(redis, retry))
    wait_until(lambda: is_queued(redis, lost, client="lost"))

    assert scheduler.stop(signal.SIGTERM) == 0
    assert "scheduler starts: queues default, low" in scheduler.log
    assert "scheduler has stopped" in scheduler.log
    assert "Traceback" not in scheduler.log


def test_it_ends_when_its_terminal_is_closed(rtq_scheduler):
    scheduler = rtq_scheduler()

    assert scheduler.stop(signal.SIGHUP) == 0
    assert "scheduler has stopped" in scheduler.log


def test_it_starts_periodic_jobs_and_ends_at_ctrl_c(redis, rtq_scheduler):
    tick = {"task": "tests.app.tasks.note", "every": 0.1, "args": ["tick"]}
    scheduler = rtq_scheduler(SCHEDULES={"tick": tick})

    wait_until(lambda: redis.llen(f"{{rtq:{QUEUE}}}:lane:0:") >= 5)

    assert scheduler.stop(signal.SIGINT) == 0
    ids = redis.lrange(f"{{rtq:{QUEUE}}}:lane:0:", 0, -1)
    assert len(ids) == len(set(ids))


def test_settings_that_make_no_sense(monkeypatch):
    def complain(*args, **options):
        raise ConfigurationError("nothing is right")

    monkeypatch.setattr("django_rtq.core.commands.rtq_scheduler.open_broker", complain)

    assert run("rtq_scheduler").error == "nothing is right"
