"""What a supervisor hears of people."""

import pytest

from django_rtq.broker.control import WorkerCommand, send_command
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.shared_memory import SharedState
from django_rtq.worker.supervisor.control import ControlListener
from django_rtq.worker.supervisor.heartbeat import Heartbeat
from tests.support.jobs import QUEUE, WORKER, asked_job, claimed_job
from tests.support.waiting import wait_until


class Child:
    """A child as the supervisor sees it."""

    def __init__(self, page):
        self.page, self.pid, self.terminated, self.signals = page, 4711, [], []

    def kill(self, signum):
        self.signals.append(signum.name)


@pytest.fixture
def child():
    page = SharedState(2)
    page.sign(WORKER)
    return Child(page)


@pytest.fixture
def woken():
    """How often the main thread was woken."""
    return []


@pytest.fixture
def errands(broker, child, woken):
    options = WorkerOptions(queues=[QUEUE, "low"], name="host")
    errands = ControlListener(broker, options, lambda: [(child.pid, child.page)], lambda: woken.append(True))
    yield errands
    errands.stop()


def runs(child, *jobs):
    for job in jobs:
        child.page.start(child.page.enter(job.id.encode()))


def test_a_job_that_runs_here_is_asked_again_and_again(broker, errands, child, woken):
    job = asked_job(broker)
    beside = claimed_job(broker)
    runs(child, beside, job)
    errands.tick()
    for _ in range(2):
        errands.stop_jobs(child)

    assert woken == [True]
    assert child.signals == ["SIGUSR1", "SIGUSR1"]
    assert child.page.to_stop() == [job.id.encode()]


def test_a_job_that_has_not_begun_is_asked_when_it_does(broker, errands, child):
    job = asked_job(broker)
    errands.tick()
    errands.stop_jobs(child)
    assert child.signals == []

    runs(child, job)
    errands.stop_jobs(child)
    assert child.signals == ["SIGUSR1"]


def test_a_job_is_terminated_once(broker, errands, child):
    job = asked_job(broker, terminate=True)
    runs(child, job)
    errands.tick()
    for _ in range(2):
        errands.stop_jobs(child)

    assert child.signals == ["SIGKILL"]
    assert child.terminated == [job.id]


def test_a_job_of_that_id_in_the_hands_of_another_is_not_meant(broker, errands, child, woken):
    job = asked_job(broker, worker="w2")
    runs(child, job)
    errands.tick()
    errands.stop_jobs(child)

    assert (woken, child.signals) == ([], [])


def test_an_answer_that_the_heartbeat_got_late_takes_no_wish_back(broker, errands, child, woken):
    job = asked_job(broker)
    runs(child, job)
    errands.tick()
    errands.tell([])
    errands.stop_jobs(child)

    assert (woken, child.signals) == ([True], ["SIGUSR1"])


def test_an_order_wakes_who_has_to_carry_it_out_once(broker, errands, woken):
    errands.tick()
    assert errands.order is None
    send_command(broker, errands.supervisor, WorkerCommand.QUIET)
    errands.tick()
    errands.tick()

    assert errands.order is WorkerCommand.QUIET
    assert woken == [True]


def test_a_token_is_heard_at_once(broker, errands, woken):
    errands.start()
    wait_until(lambda: broker.redis.execute_one(("CLIENT", "LIST")).count(b"cmd=bzpopmin") == 1)
    send_command(broker, errands.supervisor, WorkerCommand.STOP)

    wait_until(lambda: woken)
    assert errands.order is WorkerCommand.STOP


def test_what_people_leave_behind_goes_away(redis, broker, errands):
    send_command(broker, errands.supervisor, WorkerCommand.STOP)

    for key in (broker.keys.control_signal(errands.supervisor), broker.keys.control(errands.supervisor)):
        assert 0 < redis.ttl(key) <= 3600


def test_the_heartbeat_hears_of_it_as_well_and_says_where_to_leave_orders(redis, broker, inspector, errands, child):
    heartbeat = Heartbeat(
        broker,
        [QUEUE, "low"],
        lambda: [(child.pid, child.page)],
        promotes=True,
        supervisor=errands.supervisor,
        tell_asked=errands.tell,
    )
    job = asked_job(broker)
    runs(child, job)
    child.page.is_quiet = True
    heartbeat.tick()
    errands.stop_jobs(child)

    assert child.signals == ["SIGUSR1"]
    (worker,) = inspector.workers([QUEUE])
    assert (worker.supervisor_name, worker.is_quiet) == (errands.supervisor, True)
    inspector.wake_worker(WORKER)
    assert redis.get(broker.keys.control(errands.supervisor)) == b"work"
