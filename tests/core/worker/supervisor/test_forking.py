"""Which processes a supervisor forks, and when; with a process pool that forks nothing."""

import logging
import os
import signal

import pytest

from django_rtq.core.worker.options import EXIT_CANNOT_START, EXIT_DONE, EXIT_RECYCLED, WorkerOptions
from django_rtq.core.worker.shared_memory import ACKED, SharedState
from django_rtq.core.worker.supervisor import fork_schedule
from django_rtq.core.worker.supervisor import supervisor as module
from django_rtq.core.worker.supervisor.process_pool import ChildProcess, ProcessPool
from django_rtq.core.worker.supervisor.supervisor import CHECK_SECONDS, DOZE_SECONDS, TOUCH_SECONDS, Supervisor
from django_rtq.exceptions import FormatMismatch
from tests.support.jobs import QUEUE

DIED = signal.SIGKILL  # as a status of waitpid


def left(code):
    """The status of a process that left with this code."""
    return code << 8


class FakeProcess(ChildProcess):
    """It is no process: it exits when it gets SIGTERM."""

    def kill(self, signum):
        self.status = left(EXIT_DONE) if signum == signal.SIGTERM else DIED


class FakeProcessPool(ProcessPool):
    """Forks nothing. `script` says what happens at each call of reap()."""

    script = ()
    at_fork = ()  # called by the first forks, one each

    def __init__(self, config, options):
        super().__init__(config, options)
        self.forks = self.looks = 0
        self._steps, self._at_fork = list(self.script), list(self.at_fork)

    def prepare(self):
        pass

    def fork(self):
        if self._at_fork:
            self._at_fork.pop(0)()
        self.forks += 1
        process = FakeProcess(10_000_000 + self.forks, SharedState(1))
        process.status = None
        self.processes.append(process)

    def reap(self):
        self.looks += 1
        assert self.looks < 60, "it does not come to its end"
        if self._steps:
            self._steps.pop(0)(self)
        ended = [(child, child.status) for child in self.processes if child.status is not None]
        self.processes = [child for child in self.processes if child.status is None]
        return ended


def stop(process_pool=None):
    """The first signal comes, here and now."""
    signal.raise_signal(signal.SIGTERM)


def ends(status, *, claimed=True):
    """The oldest child ends."""

    def step(process_pool):
        if not process_pool.processes:  # its fork was put off, as a loop was in the middle of a tick
            process_pool._steps.insert(0, step)
            return
        child = process_pool.processes[0]
        child.status = status
        child.shared.record_claim(jobs_done=0, claimed_at=1.0 if claimed else 0.0)

    return step


def stops_after(forks):
    """The first signal comes when so many are forked: a fork is put off while a loop is in the middle of a tick."""

    def step(process_pool):
        if process_pool.forks < forks:
            process_pool._steps.insert(0, step)
        else:
            stop()

    return step


def both(*steps):
    def step(process_pool):
        for each in steps:
            each(process_pool)

    return step


@pytest.fixture
def supervise(broker, monkeypatch):
    """Run a supervisor of so many processes to its end. Returns it and its exit code."""

    def run(*script, processes=1, at_fork=(), **options):
        fake_pool = type("ThisPool", (FakeProcessPool,), {"script": script, "at_fork": at_fork})
        monkeypatch.setattr(module, "ProcessPool", fake_pool)
        options = WorkerOptions(queues=[QUEUE], name="host", processes=processes, **options)
        supervisor = Supervisor(broker, options)
        return supervisor, supervisor.run()

    return run


class Slept(list):
    """For how long the main thread wanted to sleep. It does not, and hears of signals; its clock goes on."""

    woken = ()  # the numbers of the sleeps, from 1, that something ended

    def monotonic(self):
        return 1000.0 + sum(self)


@pytest.fixture
def slept(monkeypatch):
    slept, sleep = Slept(), module.Wakeup.sleep

    def note(self, seconds):
        slept.append(seconds)
        sleep(self, 0.0)
        return len(slept) in slept.woken

    monkeypatch.setattr(module.Wakeup, "sleep", note)
    monkeypatch.setattr(module, "time", slept)
    return slept


LEFT = [left(EXIT_RECYCLED), left(EXIT_DONE), DIED]  # by itself, each of them


@pytest.mark.parametrize(
    ("script", "options", "forks"),
    [
        ([], {"processes": 50, "at_fork": [lambda: None, stop]}, 2),  # a signal between two forks
        *(([both(stop, ends(status))], {}, 1) for status in LEFT),  # between a signal and its being heeded
        ([stop, ends(DIED)], {"processes": 2}, 2),  # in a drain
        *(([ends(status), ends(status), stops_after(3)], {}, 3) for status in LEFT),
        ([ends(left(EXIT_DONE))] * 2, {"processes": 2, "burst": True}, 2),  # all have left
    ],
)
def test_whoever_ends_by_itself_has_a_successor_unless_all_are_to_end(supervise, script, options, forks):
    supervisor, code = supervise(*script, **options)

    assert (supervisor._process_pool.forks, code) == (forks, 0)


def test_in_a_burst_a_successor_waits_until_the_jobs_of_a_crashed_process_are_back(supervise, monkeypatch):
    """It would find nothing to claim, and end the burst without them."""
    events, recoveries, interrupt = [], [], module.CrashRecovery.interrupt

    class Late(module.CrashRecovery):
        """Its thread gets its turn after some looks of the main thread."""

        def __init__(self, *args):
            super().__init__(*args)
            recoveries.append(self)

        def interrupt(self):
            pass

        def _recover(self, process, send_later):
            events.append("jobs are back")

    def name_and_end(process_pool):
        process_pool.processes[0].shared.set_name("host-1")
        ends(DIED)(process_pool)

    def recover(process_pool):
        Late.interrupt = interrupt
        recoveries[0].interrupt()

    monkeypatch.setattr(module, "CrashRecovery", Late)
    forks = [lambda: events.append("forked")] * 2
    look = [lambda process_pool: None] * 3
    supervisor, code = supervise(name_and_end, *look, recover, ends(left(EXIT_DONE)), burst=True, at_fork=forks)

    assert events == ["forked", "jobs are back", "forked"]
    assert (supervisor._process_pool.forks, code) == (2, 0)


def refuse():
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_fork_that_fails_is_tried_again_and_ends_nobody(supervise, caplog):
    supervisor, code = supervise(processes=2, at_fork=[lambda: None, refuse, refuse, stop])

    assert (supervisor._process_pool.forks, code) == (2, 0)
    assert caplog.text.count("cannot fork a process, retrying") == 2


def test_after_a_false_start_nobody_is_forked_for_a_while_but_deaths_are_seen(supervise, slept, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "django_rtq")
    monkeypatch.setattr(fork_schedule.ForkSchedule, "_delay_forks", put_off_for_an_hour)
    supervisor, code = supervise(ends(DIED, claimed=False), ends(DIED), ends(left(EXIT_RECYCLED)), stop, processes=3)

    assert (supervisor._process_pool.forks, code) == (3, 0)
    assert max(slept) <= CHECK_SECONDS
    assert caplog.text.count("was killed by SIGKILL") == 2


def starts_job(process_pool):
    shared = process_pool.processes[0].shared
    shared.start_batch([b"job"])
    shared.start(0)


def ends_job(process_pool):
    process_pool.processes[0].shared.finish(0, ACKED, 1)


def waits(process_pool):
    pass


OFTEN = CHECK_SECONDS
LONGER = [
    OFTEN,
    OFTEN,
    OFTEN,
    2 * OFTEN,
    4 * OFTEN,
    8 * OFTEN,
    16 * OFTEN,
]  # the first sleep comes before it has looked


def test_a_supervisor_sleeps_as_long_as_no_job_has_run(supervise, slept):
    slept.woken = (10,)  # by the process that has claimed a job
    supervise(*[waits] * 9, starts_job, waits, ends_job, *[waits] * 5, stop)

    assert slept[:10] == [*LONGER, DOZE_SECONDS, DOZE_SECONDS, DOZE_SECONDS]
    assert slept[10:18] == [OFTEN, OFTEN, *LONGER[:6]]


def test_one_that_was_woken_looks_often_again(supervise, slept):
    slept.woken, told = (4,), []
    note = [lambda pool: told.append({process.shared.is_supervisor_dozing for process in pool.processes})]
    supervise(*note * 7, stop, processes=2)

    assert told == [{True}, {True}, {True}, {False}, {True}, {True}, {True}]  # before it sleeps longer processes know
    assert slept[:8] == [*LONGER[:4], *LONGER[:4]]


def test_a_health_file_is_touched_in_time(supervise, slept, tmp_path):
    supervise(*[waits] * 9, stop, health_file=str(tmp_path / "well"))

    assert slept[:9] == [*LONGER[:5], *[TOUCH_SECONDS] * 4]


def test_data_of_another_format_wakes_it(supervise, broker, monkeypatch):
    woken, wake = [], module.Wakeup.wake
    monkeypatch.setattr(module.Wakeup, "wake", lambda self: (woken.append(1), wake(self)))
    _, code = supervise(lambda pool: monkeypatch.setattr(broker, "heartbeat", refuse_format), *[waits] * 50)

    assert (code, len(woken) > 0) == (EXIT_CANNOT_START, True)


def refuse_format(*args, **kwargs):
    raise FormatMismatch("Redis holds data of another format")


def test_a_sleep_says_whether_something_ended_it():
    wakeup = module.Wakeup()
    with wakeup.install_handlers():
        said = [wakeup.sleep(0.0)]
        for wake in (wakeup.wake, lambda: signal.raise_signal(signal.SIGCHLD), stop):
            wake()
            said += [wakeup.sleep(0.0), wakeup.sleep(0.0)]

    assert said == [False, True, False, True, False, True, False]


def put_off_for_an_hour(self, seconds):
    self._not_before = fork_schedule.time.monotonic() + 3600


def test_processes_that_keep_crashing_are_replaced_after_a_pause_which_a_signal_ends(supervise, monkeypatch, caplog):
    monkeypatch.setattr(fork_schedule, "FIRST_CRASH_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(fork_schedule, "MAX_PAUSE_SECONDS", 3600.0)
    crashes = [ends(DIED)] * (fork_schedule.CRASHES_WITHOUT_PAUSE + 1)
    recycled = ends(left(EXIT_RECYCLED))
    forks = 2 + len(crashes) - 1 + 2
    supervisor, code = supervise(*crashes, recycled, recycled, stops_after(forks), processes=2)

    assert (supervisor._process_pool.forks, code) == (forks, 0)
    assert caplog.text.count("processes keep crashing before they run a job (was killed by SIGKILL") == 1


def test_whoever_gives_up_lets_the_others_finish(supervise, monkeypatch, caplog):
    monkeypatch.setattr(fork_schedule.ForkSchedule, "should_give_up", property(lambda self: self._failed_starts > 0))
    supervisor, code = supervise(ends(DIED, claimed=False), processes=2)

    assert (supervisor._process_pool.forks, code) == (2, EXIT_CANNOT_START)
    assert "gives up" in caplog.text
    assert not any(child.killed_at_shutdown for child in supervisor._process_pool.processes)


def test_a_tick_that_hangs_puts_a_fork_off_but_not_for_ever(supervise, monkeypatch):
    """As when Redis hangs: nobody knows when the tick will be over."""
    tries = []

    def waited_long_enough(self):
        tries.append(self.pending)
        return len(tries) > 2

    monkeypatch.setattr(fork_schedule.ForkSchedule, "waited_long_enough", waited_long_enough)
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.01)

    class Silent(module.Heartbeat):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            beats.append(self)

    def hang(process_pool):
        beats[0].tick_lock.acquire()

    def let_go(process_pool):
        beats[0].tick_lock.release()
        stop()

    beats = []
    monkeypatch.setattr(module, "Heartbeat", Silent)
    nothing = [lambda process_pool: None] * 3
    supervisor, code = supervise(both(hang, ends(DIED)), *nothing, let_go)

    assert (supervisor._process_pool.forks, code) == (2, 0)
    assert len(tries) == 3


@pytest.fixture
def process_pool(broker):
    return ProcessPool(broker.config, WorkerOptions(queues=[QUEUE]))


def test_a_fork_that_fails_leaves_no_signal_blocked(process_pool, monkeypatch):
    monkeypatch.setattr(os, "fork", refuse)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with pytest.raises(OSError, match="temporarily unavailable"):
        process_pool.fork()

    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert process_pool.processes == []


def test_what_cannot_be_flushed_keeps_nobody_from_forking(process_pool, monkeypatch):
    class Closed:
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr("sys.stdout", Closed())
    monkeypatch.setattr("sys.stderr", None)
    with pytest.raises(OSError, match="temporarily unavailable"):
        process_pool.fork()


def test_no_database_connection_crosses_a_fork(process_pool, monkeypatch, django_db_blocker):
    """In a thread of the test's own, whose connections are its own."""
    from tests.core.threads.test_database_connections import in_thread, open_connections, query, unblocked

    def look():
        seen.append(open_connections())
        refuse()

    def act():
        query()
        before = len(open_connections())
        with pytest.raises(OSError, match="temporarily unavailable"):
            process_pool.fork()
        return before

    seen = []
    monkeypatch.setattr(os, "fork", look)
    monkeypatch.setattr(signal, "pthread_sigmask", lambda how, signals: set())
    with unblocked(django_db_blocker):
        assert in_thread(act) == 1
    assert seen == [[]]
