"""Remote control of a supervisor."""

import pytest

from django_rtq.core.broker.control import WorkerCommand, send_command
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.core.worker.supervisor.heartbeat import Heartbeat
from django_rtq.core.worker.supervisor.supervisor import ControlListener
from tests.support.jobs import QUEUE, WORKER, asked_job, claimed_job
from tests.support.waiting import wait_until


class Child:
    """A child as the supervisor sees it."""

    def __init__(self, shared):
        self.shared, self.pid, self.terminated, self.signals = shared, 4711, [], []

    def kill(self, signum):
        self.signals.append(signum.name)


@pytest.fixture
def child():
    shared = SharedState(2)
    shared.set_name(WORKER)
    return Child(shared)


@pytest.fixture
def woken():
    """How often the main thread was woken."""
    return []


@pytest.fixture
def control(broker, child, woken):
    options = WorkerOptions(queues=[QUEUE, "low"], name="host")
    control = ControlListener(broker, options, lambda: [(child.pid, child.shared)], lambda: woken.append(True))
    yield control
    control.stop()


def heartbeat_of(broker, control, child):
    told = {"supervisor_info": control.info, "on_cancel_requests": control.on_cancel_requests}
    return Heartbeat(broker, [QUEUE, "low"], lambda: [(child.pid, child.shared)], promotes=True, **told)


def runs(child, *jobs):
    for job in jobs:
        child.shared.start(child.shared.add_entry(job.id.encode()))


def test_a_job_that_runs_here_is_asked_again_and_again(broker, control, child, woken):
    job = asked_job(broker)
    beside = claimed_job(broker)
    runs(child, beside, job)
    control.tick()
    for _ in range(2):
        control.cancel_jobs(child)

    assert woken == [True]
    assert child.signals == ["SIGUSR1", "SIGUSR1"]
    assert child.shared.cancel_requests() == [job.id.encode()]


def test_a_job_that_has_not_begun_is_asked_when_it_does(broker, control, child):
    job = asked_job(broker)
    control.tick()
    control.cancel_jobs(child)
    assert child.signals == []

    runs(child, job)
    control.cancel_jobs(child)
    assert child.signals == ["SIGUSR1"]


def test_a_job_is_terminated_once(broker, control, child):
    job = asked_job(broker, terminate=True)
    runs(child, job)
    control.tick()
    for _ in range(2):
        control.cancel_jobs(child)

    assert child.signals == ["SIGKILL"]
    assert child.terminated == [job.id]


def test_a_job_of_that_id_in_the_hands_of_another_is_not_meant(broker, control, child, woken):
    job = asked_job(broker, worker="w2")
    runs(child, job)
    control.tick()
    control.cancel_jobs(child)

    assert (woken, child.signals) == ([], [])


def test_an_answer_that_the_heartbeat_got_late_takes_no_wish_back(broker, control, child, woken):
    job = asked_job(broker)
    runs(child, job)
    control.tick()
    control.on_cancel_requests({})
    control.cancel_jobs(child)

    assert (woken, child.signals) == ([True], ["SIGUSR1"])


@pytest.mark.parametrize("reader", ["listener", "heartbeat"])
def test_the_main_thread_finds_the_request_as_soon_as_it_is_woken(broker, control, child, woken, reader):
    """It is quicker than the thread that wakes it, and looks again only after half a second."""
    job = asked_job(broker)
    runs(child, job)
    woken_at_once = []

    def wake():
        control.cancel_jobs(child)
        woken_at_once.append(list(child.signals))

    control._wake = wake
    if reader == "listener":
        control.tick()
    else:
        control.on_cancel_requests({(WORKER, job.id): "ask"})

    assert woken_at_once == [["SIGUSR1"]]


def test_an_order_wakes_who_has_to_carry_it_out_once(broker, control, woken):
    control.tick()
    assert control.command is None
    send_command(broker, control.supervisor, WorkerCommand.QUIET)
    control.tick()
    control.tick()

    assert control.command is WorkerCommand.QUIET
    assert woken == [True]
    assert control.info() == {"supervisor_name": control.supervisor, "quiet_seconds": "0", "quiet_by": ""}


def test_people_are_told_who_asked_for_quiet_and_for_how_long_it_lasts(broker, readers, control, child):
    heartbeat = heartbeat_of(broker, control, child)
    child.shared.is_quiet = True
    broker.sign_on([QUEUE, "low"], child.shared.worker)
    send_command(broker, control.supervisor, WorkerCommand.QUIET, by="ada b")
    control.tick()
    control._commanded_at -= 90
    heartbeat.tick()
    (worker,) = readers.workers()
    assert worker.quiet_by == "ada b"
    assert 90 <= worker.quiet_seconds < 150

    send_command(broker, control.supervisor, WorkerCommand.WORK)
    control.tick()
    child.shared.is_quiet = False
    heartbeat.tick()
    (worker,) = readers.workers()
    assert (worker.is_quiet, worker.quiet_by, worker.quiet_seconds) == (False, "", None)


def test_a_token_is_heard_at_once(broker, control, woken):
    control.start()
    wait_until(lambda: broker.redis.execute_one(("CLIENT", "LIST")).count(b"cmd=bzpopmin") == 1)
    send_command(broker, control.supervisor, WorkerCommand.STOP)

    wait_until(lambda: woken)
    assert control.command is WorkerCommand.STOP


def test_what_people_leave_behind_goes_away(redis, broker, control):
    send_command(broker, control.supervisor, WorkerCommand.STOP)

    for key in (broker.keys.control_signal(control.supervisor), broker.keys.control(control.supervisor)):
        assert 0 < redis.ttl(key) <= 3600


def test_the_heartbeat_hears_of_it_as_well_and_says_where_to_leave_orders(redis, broker, readers, rtq, control, child):
    heartbeat = heartbeat_of(broker, control, child)
    job = asked_job(broker)
    runs(child, job)
    child.shared.is_quiet = True
    heartbeat.tick()
    control.cancel_jobs(child)

    assert child.signals == ["SIGUSR1"]
    (worker,) = readers.workers([QUEUE])
    assert (worker.supervisor_name, worker.is_quiet) == (control.supervisor, True)
    rtq.workers[WORKER].wake()
    assert redis.get(broker.keys.control(control.supervisor)) == b"work"
