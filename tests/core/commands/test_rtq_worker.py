"""rtq_worker's command line. What it does then is tested with the workers."""

import os
import signal

import pytest
from django.core.management import ManagementUtility

from django_rtq.core.worker.operating_system import stop_signals
from tests.support.commands import run


def from_command_line(*arguments):
    """Run it as manage.py does. Returns the exit code."""
    with pytest.raises(SystemExit) as exit_:
        ManagementUtility(["manage.py", "rtq_worker", *arguments]).execute()
    return exit_.value.code


@pytest.fixture
def started(broker, monkeypatch):
    """The options of workers that would have been started."""
    found = []

    class Supervisor:
        def __init__(self, broker, options):
            found.append(options)

        def begin(self):
            pass

        def run(self):
            return 0

    monkeypatch.setattr("django_rtq.core.worker.supervisor.supervisor.Supervisor", Supervisor)
    monkeypatch.setattr("django_rtq.core.commands.worker_setup.start_apps", lambda backend: None)
    return found


@pytest.mark.parametrize(("cpus", "most"), [(1, 64), (8, 64), (16, 128), (None, 64)])
def test_processes_have_a_limit(started, monkeypatch, capsys, cpus, most):
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    run("rtq_worker", "--processes", str(most))
    assert [options.processes for options in started] == [most]

    assert from_command_line("--processes", str(most + 1)) == 64
    complaint = capsys.readouterr().err
    assert f"{most + 1} processes are more than the limit of {most}" in complaint
    assert "--concurrency" in complaint
    assert len(started) == 1


def test_slots_have_a_limit(started, capsys):
    run("rtq_worker", "--concurrency", "10000")
    assert [options.concurrency for options in started] == [10_000]

    assert from_command_line("--concurrency", "10001") == 64
    complaint = capsys.readouterr().err
    assert "10001 concurrent jobs are more than the limit of 10000" in complaint
    assert "--processes" in complaint


@pytest.mark.parametrize("option", ["--processes", "--concurrency", "--max-jobs"])
@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", ""])
def test_numbers_that_are_none_are_wrong_usage(started, capsys, option, value):
    assert from_command_line(f"{option}={value}") == 64
    assert "is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize("queues", [" , ", "a b"])
def test_queues_that_make_no_sense_are_wrong_usage(started, capsys, queues):
    assert from_command_line("--queues", queues) == 64
    assert not started


def test_handlers_of_signals_are_put_back(started):
    before = [signal.getsignal(signum) for signum in stop_signals()]
    run("rtq_worker")

    assert started
    assert [signal.getsignal(signum) for signum in stop_signals()] == before
