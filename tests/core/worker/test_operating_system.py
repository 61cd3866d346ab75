"""Signals of a worker process, jobs that use signals and processes of their own, and the memory of a process."""

import ast
import os
import signal

import pytest

from django_rtq.core.worker.operating_system import memory_bytes
from tests.app import signal_tasks, tasks
from tests.core.worker.conservation import assert_nothing_left
from tests.support.signals import ignored
from tests.support.waiting import wait_until

DEFAULTS = ["SIG_DFL", "default_int_handler", "SIG_DFL", "SIG_DFL"]


def result(job):
    """Of a job that is over soon. Without waiting for its token, which would be left."""
    wait_until(lambda: job.state.is_final)
    return job.result


@pytest.mark.parametrize("concurrency", [1, 2])
def test_processes_that_a_job_forks_can_be_terminated_at_once(rtq_worker, redis, journal, concurrency):
    worker = rtq_worker("--concurrency", concurrency)

    assert result(signal_tasks.terminate_processes.delay(20)) == [-signal.SIGTERM] * 20
    assert_nothing_left(redis, worker)


def test_a_program_that_a_job_starts_heeds_an_interrupt(rtq_worker, redis, journal):
    worker = rtq_worker()

    assert result(signal_tasks.interrupt_program.delay()) == -signal.SIGINT
    worker.stop()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_what_a_job_forks_has_the_default_handlers_and_no_timer(rtq_worker, redis, journal, concurrency):
    worker = rtq_worker("--concurrency", concurrency)
    of_fork, mask = result(signal_tasks.handlers_of_fork.delay())
    *names, timer, mask_of_fork = ast.literal_eval(of_fork)

    assert names == DEFAULTS
    assert (timer, mask_of_fork, mask) == (0.0, 0, 0)
    worker.stop()


def test_what_a_job_forks_inherits_handlers_of_the_job(rtq_worker, redis, journal):
    worker = rtq_worker()
    of_fork, _ = result(signal_tasks.handlers_of_fork.delay("SIGTERM"))

    assert ast.literal_eval(of_fork)[0] == "_own_handler"
    worker.stop()


def test_a_job_that_takes_signals_takes_them_for_itself_alone(rtq_worker, redis, journal):
    worker = rtq_worker()
    before = result(signal_tasks.handlers.delay())
    taken = signal_tasks.take_signals.delay()
    after = result(signal_tasks.handlers.delay())

    assert after[:3] == before[:3] == ["on_stop_signal", "ignore_signal", "on_control_signal"]
    assert taken.state.is_final
    job = journal.begin(tasks.gate, "job", "gate")
    worker.kill_group(signal.SIGINT)  # as a terminal does at Ctrl-C
    wait_until(lambda: "stopping: running jobs have" in worker.log)
    journal.open("gate")

    assert worker.wait() == 0
    assert (str(job.state), job.refresh().attempt) == ("succeeded", 1)
    assert_nothing_left(redis)


def test_under_nohup_a_worker_goes_on_when_its_terminal_is_closed(rtq_worker, redis, journal):
    with ignored(signal.SIGHUP):
        worker = rtq_worker()
    child = worker.child
    worker.kill_group(signal.SIGHUP)

    assert result(tasks.note.delay("later")) == "later"
    assert (worker.child, worker.stop()) == (child, 0)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_in_the_background_of_a_script_heeds_signals_that_it_inherits_ignored(rtq_worker, redis, signum):
    with ignored(signum):
        worker = rtq_worker()

    assert worker.stop(signum) == 0


def test_ones_own_memory_is_known():
    assert 1_000_000 < memory_bytes() < 100_000_000_000
    assert memory_bytes(os.getpid()) > 1_000_000


def test_of_a_process_that_is_gone_nothing_is_known():
    assert memory_bytes(2**30) is None
