"""Functions that get many jobs at once, run by drain() and eager()."""

import pytest

from django_rtq import BatchFailed, Bury, Call, JobState, current_job
from django_rtq.core.worker.process.running.batch import BatchWatch
from django_rtq.exceptions import InvalidStep, InvalidWorkflow, PayloadError, TimeLimitExceeded
from django_rtq.testing import drain, eager
from tests.app import batch_tasks as tasks
from tests.app import journal as journals
from tests.app.middleware import LOG


@pytest.fixture
def batches(monkeypatch, tmp_path):
    """The first arguments of the calls of each batch so far."""
    path = tmp_path / "journal"
    path.touch()
    monkeypatch.setenv(journals.FILE, str(path))
    return lambda: [entry.name for entry in journals.read(path)]


def states(runs):
    return [run.state.value for run in runs]


pytestmark = pytest.mark.usefixtures("broker")


# -- which jobs


def test_a_batch_is_of_one_client(batches):
    for number in range(25):
        tasks.index.using(client="ab"[number % 2]).delay(number)

    assert states(drain()) == ["succeeded"] * 25

    assert batches() == ["0 2 4 6 8 10 12 14 16 18", "1 3 5 7 9 11 13 15 17 19", "20 22 24", "21 23"]


def test_jobs_of_other_tasks_between_are_run_in_their_order(batches):
    for number in range(6):
        (tasks.double if number == 3 else tasks.index).delay(number)

    runs = drain()

    assert [run.args[0] for run in runs] == list(range(6))
    assert batches() == ["0 1 2", "4 5"]


def test_a_slow_machine_does_not_cut_a_call(batches, monkeypatch):
    monkeypatch.setattr(BatchWatch, "begin", lambda self, batch: batch.cut())
    for number in range(3):
        tasks.index.delay(number)

    drain()

    assert batches() == ["0 1 2"]


def test_what_calls_tell_of_their_jobs():
    first = tasks.echo.using(client="acme", headers={"a": 1}).delay(1, b=2)
    tasks.echo.using(client="acme").delay(2)

    runs = drain()

    assert runs[0].result == {
        "args": [1], "kwargs": {"b": 2}, "id": first.id, "attempt": 1, "queue_name": "default", "client": "acme",
        "headers": {"a": 1},
    }  # fmt: skip
    assert [run.result["args"] for run in runs] == [[1], [2]]


def test_middleware_is_called_once_for_all(middleware):
    middleware("note_middleware")
    for number in range(3):
        tasks.double.delay(number)

    assert [run.result for run in drain()] == [0, 2, 4]
    assert LOG == ["run double"]


def test_eager_calls_with_one_job_at_once(batches):
    with eager() as runs:
        handle = tasks.double.delay(4)
        tasks.index.delay("a")
        with pytest.raises(ValueError, match="no"):
            tasks.pick.delay(1, "fail")

    assert (handle.result, states(runs)) == (8, ["succeeded", "succeeded", "retrying"])
    assert batches() == ["a", "1"]


# -- what the function returns and raises


@pytest.mark.parametrize(
    ("task", "argument", "error", "words"),
    [
        (tasks.returns, [1], Bury, "got 2 calls and returned a list of 1"),
        (tasks.returns, (1, 2, 3), Bury, "got 2 calls and returned a list of 3"),
        (tasks.returns, {}, Bury, "got 2 calls and returned a dict"),
        (tasks.returns, "ab", Bury, "got 2 calls and returned a str"),
        (tasks.names_call, 2, Bury, "raised BatchFailed for call 2, but it got 2 calls"),
        (tasks.does, "step", InvalidStep, "gets many jobs at once"),
        (tasks.does, "sleep", InvalidStep, "gets many jobs at once"),
        (tasks.does, "wait", InvalidStep, "gets many jobs at once"),
        (tasks.does, "workflow", InvalidWorkflow, "gets many jobs at once"),
    ],
)
def test_what_such_a_function_cannot_do_fails_its_jobs_and_is_said(task, argument, error, words):
    for _ in range(2):
        task.delay(value=argument) if task is tasks.returns else task.delay(argument)

    runs = drain(raise_errors=False)

    assert states(runs) == ["retrying" if error is InvalidWorkflow else "dead"] * 2
    assert [type(run.error) for run in runs] == [error, error]
    assert words in str(runs[0].error)


def test_one_result_that_cannot_be_stored_is_no_failure_of_the_others():
    for value in ("fine", "bad", "fine"):
        tasks.unstorable.delay(value)

    runs = drain(raise_errors=False)

    assert states(runs) == ["succeeded", "dead", "succeeded"]
    assert isinstance(runs[1].error, PayloadError)


def test_only_the_calls_that_are_named_fail(batches):
    for number, what in enumerate(("", "fail", "", "later", "bury")):
        tasks.pick.delay(number, what)

    runs = drain(raise_errors=False, until=59)

    assert states(runs) == ["succeeded", "retrying", "succeeded", "retrying", "dead", "retrying", "dead"]
    assert [str(run.error) for run in runs if run.error] == [
        "no", "the task asked to be retried", "never", "no", "no",
    ]  # fmt: skip
    assert batches() == ["0 1 2 3 4", "1", "1"]
    assert states(drain(raise_errors=False, until=2)) == ["retrying"]


def test_another_error_fails_all_and_then_they_run_in_halves_so_that_one_job_does_not_bury_the_others(batches):
    for name in ("a", "bad", "c", "d", "e", "f", "g", "h"):
        tasks.all_or_none.delay(name)

    runs = drain(raise_errors=False, until=100)

    last = {run.args[0]: run.state for run in runs}
    assert [name for name, state in last.items() if state is not JobState.SUCCEEDED] == ["bad"]
    assert last["bad"] is JobState.DEAD
    assert batches() == ["a bad c d e f g h"] * 2 + ["a bad c d", "e f g h", "a bad", "c d", "a", "bad", "bad"]


def test_jobs_that_failed_together_come_back_together(batches):
    for name in ("a", "bad", "c"):
        tasks.random_backoff.delay(name)

    runs = drain(raise_errors=False, until=1000)

    assert batches() == ["a bad c", "a bad c", "a", "bad", "c"]
    assert [run.state.value for run in runs[-3:]] == ["succeeded", "dead", "succeeded"]


def test_the_shortest_time_limit_is_that_of_the_batch():
    tasks.slow.using(time_limit=60).delay()
    tasks.slow.delay()

    runs = drain(raise_errors=False, time_limits=True)

    assert states(runs) == ["dead", "dead"]
    assert all(isinstance(run.error, TimeLimitExceeded) for run in runs)


def test_the_current_job_is_the_first_and_all_get_its_progress(readers):
    jobs = [tasks.does.delay("progress") for _ in range(2)]
    assert current_job() is None

    runs = drain()

    assert [run.result for run in runs] == [jobs[0].id, jobs[0].id]


def test_a_job_whose_record_cannot_be_read_is_dead_alone(batches, broker):
    tasks.index.delay("a")
    bad = tasks.index.delay("b")
    tasks.index.delay("c")
    keys = broker.keys.of("default")
    record = broker.redis.execute_one(("HGET", keys.jobs, bad.id))
    broker.redis.execute_one(("HSET", keys.jobs, bad.id, record.replace(b'["b"]', b'"b"')))

    runs = drain(raise_errors=False)

    assert sorted(states(runs)) == ["dead", "succeeded", "succeeded"]
    assert batches() == ["a c"]


def test_a_job_that_is_too_late_takes_no_part(batches, broker):
    tasks.index.delay("a")
    late = tasks.index.using(expires=60).delay("b")
    keys = broker.keys.of("default")
    head, _, body = broker.redis.execute_one(("HGET", keys.jobs, late.id)).partition(b"\n")
    priority, crashes, ready, _, *client = head.split(b" ")
    broker.redis.execute_one(
        ("HSET", keys.jobs, late.id, b" ".join([priority, crashes, ready, b"1", *client]) + b"\n" + body)
    )

    assert states(drain()) == ["expired", "succeeded"]
    assert batches() == ["a"]


def test_tests_make_calls_of_their_own(batches):
    calls = [Call([1, "fail"]), Call(["x", ""], {"b": 1}, id="abc", client="acme")]

    with pytest.raises(BatchFailed) as caught:
        tasks.pick(calls)

    assert {number: type(error) for number, error in caught.value.errors.items()} == {0: ValueError}
    assert batches() == ["1 x"]
