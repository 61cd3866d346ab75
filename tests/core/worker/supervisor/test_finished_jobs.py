"""The supervisor settles what a dead process had finished, as the process would have done."""

import json

import pytest

from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.worker.outcome import ACKED, BURIED, CANCELLED, EXPIRED, RETRIED, Outcome
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import make_metrics
from django_rtq.core.worker.shared_memory import TEXTS, SharedState
from django_rtq.core.worker.supervisor.crash_recovery import settle_finished
from tests.core.worker import claimed_runs
from tests.core.worker.claimed_runs import BODY
from tests.support.apps import needs
from tests.support.jobs import QUEUE, let_fall_due, queued_job
from tests.support.snapshots import place_of, places_of, snapshot

DONE = Outcome(
    ACKED, text='{"state":"succeeded","task":"tests.app.tasks.note","attempt":1,"seconds":0.1,"kept":60,"result":"x"}'
)
OUTCOMES = [
    DONE,
    Outcome(ACKED),
    Outcome(RETRIED, ValueError("x"), 60),
    Outcome(BURIED, ValueError("x")),
    Outcome(EXPIRED),
    Outcome(CANCELLED),
]


def claim(session, shared):
    """Runs of what a fetch brings, on the page."""
    runs = claimed_runs.claim(session)
    shared.start_batch([run.job_id for run in runs])
    for place, run in enumerate(runs):
        run.entry = place
        shared.start(place)
    return runs


@pytest.fixture
def child(broker):
    """A session with its shared state."""
    shared = SharedState(1)
    session = WorkerSession(broker, shared, [QUEUE, "low"], base_name="host")
    session.sign_on()
    yield session, shared
    session.close()


def tell(broker, session, shared):
    settle_finished(broker, [QUEUE, "low"], session.worker, shared.finished())


def finish(broker, child, *outcomes, queue=QUEUE):
    """Jobs with these outcomes, of which Redis does not know."""
    session, shared = child
    jobs = [queued_job(broker, f"job-{number}", queue=queue, body=BODY) for number in range(len(outcomes))]
    for run, outcome in zip(claim(session, shared), outcomes, strict=True):
        session.add(run, outcome)
    return jobs


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_it_is_told_as_the_child_would_have_told_it(redis, broker, child, outcome):
    session, shared = child
    finish(broker, child, outcome)
    tell(broker, session, shared)
    told_for_it = comparable(redis, session)
    redis.flushall()
    session.sign_on()
    session._settlements.clear()
    finish(broker, child, outcome)
    session.settle()
    by_itself = comparable(redis, session)

    assert told_for_it == by_itself


STATISTICS = {"stats", "tasks", "done_runs", "failed_runs", "failing", "client_runs", "client_time", "rtq"}


def comparable(redis, session):
    """All keys, without times, names of workers, and statistics."""
    taken = snapshot(redis, times=False)
    kept = {key: value for key, value in taken.items() if key.split(":")[0] not in STATISTICS}
    return json.loads(json.dumps(kept, default=str).replace(session.worker, "<worker>"))


def test_told_twice_it_changes_nothing_and_what_ran_is_left(redis, broker, child):
    session, shared = child
    jobs = finish(broker, child, *OUTCOMES)
    running = queued_job(broker, "running", body=BODY)
    broker.claim(session.worker, [QUEUE], 1)
    tell(broker, session, shared)
    before = snapshot(redis)
    tell(broker, session, shared)

    assert snapshot(redis) == before
    assert place_of(redis, running) == f"running:{session.worker}"
    assert [places_of(redis, job) for job in jobs] == [
        ["finished"], ["finished"], ["scheduled"], ["dead"], ["finished"], ["finished"],
    ]  # fmt: skip


def test_jobs_of_every_queue_are_told(redis, broker, child):
    session, shared = child
    (job,) = finish(broker, child, DONE, queue="low")
    tell(broker, session, shared)

    assert broker.attempts(session.worker, ["low"]) == {"low": {}}
    assert redis.hexists("{rtq:low}:results", job.id)


def test_a_job_that_was_told_and_runs_again_is_not_told_once_more(redis, broker, child):
    """The process is killed between the answer of Redis and the note that there was one."""
    session, shared = child
    (job,) = finish(broker, child, Outcome(RETRIED, ValueError("x"), 0))
    finished = shared.finished()
    session.settle()
    let_fall_due(broker, job)
    broker.promote([QUEUE])
    (again,) = claim(session, shared)
    assert again.attempt == 2
    before = snapshot(redis)
    settle_finished(broker, [QUEUE], session.worker, finished)

    assert snapshot(redis) == before


def test_of_a_result_that_is_too_long_for_the_page_it_is_said_that_it_is_lost(redis, broker, child, readers, caplog):
    session, shared = child
    long = DONE.text.replace('"x"', '"' + "x" * TEXTS + '"')
    short, lost = finish(broker, child, DONE, Outcome(ACKED, text=long))
    with caplog.at_level("WARNING", "django_rtq"):
        tell(broker, session, shared)

    assert (readers.find(short.id).result, readers.find(short.id).is_result_lost) == ("x", False)
    details = readers.find(lost.id)
    assert (details.state, details.result, details.is_result_lost) == ("succeeded", None, True)
    assert details.attempt == 1
    assert f"job {lost.id} succeeded, but its result is lost" in caplog.text
    assert short.id not in caplog.text


def test_of_an_error_that_is_too_long_for_the_page_the_beginning_is_kept(redis, broker, child, readers):
    session, shared = child
    errors = [Outcome(BURIED, ValueError("beginning " + "x" * 2_000)) for _ in range(3)]
    shared._full_at = shared._text_at + 6_000
    jobs = finish(broker, child, *errors)
    assert shared.finished()
    tell(broker, session, shared)

    found = [readers.find(job.id).errors[-1]["error"] for job in jobs]
    assert [len(error) for error in found] == [2_000, 100, 100]
    assert {error[:9] for error in found} == {"beginning"}


def test_of_an_error_for_which_there_is_no_room_at_all_only_that_is_known(redis, broker, child, readers):
    session, shared = child
    (job,) = finish(broker, child, Outcome(BURIED, ValueError("x")))
    finished = [each._replace(text=b"") for each in shared.finished()]
    settle_finished(broker, [QUEUE], session.worker, finished)

    details = readers.find(job.id)
    assert details.state == "dead"
    assert "The error is lost" in details.errors[-1]["error"]


@needs("console")
def test_finished_jobs_of_a_dead_process_are_counted_for_their_task(redis, broker, child):
    session, shared = child
    finish(broker, child, *OUTCOMES)
    counts = make_metrics()
    for _ in range(2):
        settle_finished(broker, [QUEUE, "low"], session.worker, shared.finished(), counts=counts)
    ((queue, calls),) = counts.take_due().items()
    broker.settle(session.worker, queue, Settlement(metrics=calls))

    (key,) = redis.keys(f"{{rtq:{QUEUE}}}:tasks:*")
    task = "tests.app.tasks.note"
    counted = {name.decode(): int(value) for name, value in redis.hgetall(key).items()}
    assert {name: value for name, value in counted.items() if value} == {
        f"done {task}": 2, f"failed {task}": 2, f"retried {task}": 1, f"dead {task}": 1, f"expired {task}": 1,
    }  # fmt: skip
