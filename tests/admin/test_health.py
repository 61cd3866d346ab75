"""The banner of the overview: it lists problems, and is green only if there are none."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from django.test import override_settings

from django_rtq.admin.display.health import check_health
from django_rtq.admin.display.problems import is_falling_behind, is_silent
from django_rtq.broker.broker import get_broker
from django_rtq.broker.settlement import Settlement
from django_rtq.inspector.details import JobDetails, QueueDetails, RunningJob, WorkerDetails
from django_rtq.inspector.metrics import TaskMetrics
from django_rtq.inspector.overview import Overview, QueueRow
from django_rtq.inspector.server_info import ServerDetails
from django_rtq.inspector.time_series import Series
from django_rtq.jobs import serializer
from django_rtq.jobs.job import JobState
from django_rtq.transactions.outbox import OutboxLag
from tests.admin.conftest import MAIL, body, text
from tests.support.jobs import QUEUE, claimed_job, dead_job, finished_job

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
WELL = "All is well: 1 worker, no long waits."
OVERVIEW = "/admin/django_rtq/queue/"


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """The queues that tasks declare."""
    names = ["low", "mail"]
    monkeypatch.setattr("django_rtq.admin.display.health.declared_queues", lambda: names)
    return names


def url(name, *args, query=None):
    """A short form of a URL."""
    return " ".join([name, *args, *(f"{key}={value}" for key, value in (query or {}).items())])


def minutes(*last):
    """Counters of an hour that end with these values."""
    return [0] * (60 - len(last)) + list(last)


def row(name="mail", *, tasks=None, dead_letter=None, retrying_job=None, counts=None, **details):
    """A queue of the overview."""
    plain = dict.fromkeys(("queued", "scheduled", "retrying", "running", "dead", "clients"), 0)
    known = {"paused": False, "oldest_seconds": None, "contact_seconds": 1.0, "scheduler_seconds": 1.0, **plain}
    return QueueRow(
        details=QueueDetails(name=name, **{**known, **details}),
        series=Series(begins_at=NOW - timedelta(hours=1), step_seconds=60, steps=60, counts=counts or {}),
        slots=1,
        done_per_minute=0.0,
        failed_per_minute=0.0,
        utilisation=None,
        tasks=tasks or {},
        newest_dead=dead_letter,
        newest_retrying=retrying_job,
    )


def worker(*running, **details):
    """A worker that serves the queues of these tests."""
    known = {"queues": ["mail", "low"], "last_seen_seconds": 1.0, "last_claim_seconds": 1.0, "jobs_done": 1}
    known |= {"host": "web1", "pid": 7, "lease_left_seconds": 10.0}
    return WorkerDetails(name="w1", running=list(running), **{**known, **details})


def running(**details):
    """A running job."""
    known = {"id": "a", "queue": "mail", "task": "shop.tasks.resize", "client": "", "attempt": 1, "seconds": 5.0}
    return RunningJob(**{**known, **details})


def failed(task, error):
    """A failed job with the fields that the overview reads."""
    return JobDetails(id="a", queue="mail", state=JobState.DEAD, task=task, errors=[{"error_class": error}])


def health(*rows, workers=None, warnings=()):
    """The problems in the banner."""
    server = ServerDetails(now_ms=0, warnings=list(warnings))
    workers = [worker()] if workers is None else workers
    return check_health(Overview(now=NOW, queues=list(rows), workers=workers, server=server), url)


@pytest.mark.parametrize(
    ("lag", "text"),
    [
        (OutboxLag(jobs=5, oldest_seconds=59.0), ""),
        (OutboxLag(jobs=1, oldest_seconds=60.0), "1 job waits in the outbox, for 60 s."),
        (OutboxLag(jobs=5000, oldest_seconds=120.0), "5,000 jobs wait in the outbox, the oldest for 2 min."),
        (OutboxLag(jobs=0, oldest_seconds=0.0, error="no table"), "The database did not say how many jobs"),
    ],
)
def test_a_lag_of_the_outbox_is_told(lag, text):
    overview = Overview(now=NOW, queues=[row()], workers=[worker()], server=ServerDetails(now_ms=0))
    problems = check_health(overview, url, lag).problems
    assert [(problem.text.startswith(text), problem.is_bad) for problem in problems] == ([(True, True)] if text else [])


def said(found):
    return [(problem.text, problem.url) for problem in found.problems]


def test_it_is_green_when_nothing_is_wrong():
    found = health(row(counts={"succeeded": minutes(5)}))
    assert (found.level, found.summary, found.problems) == ("good", WELL, [])


def test_it_is_not_green_while_dead_letters_are_left():
    found = health(row(dead=578, counts={"failed": minutes(3, 0)}))
    assert found.level == "plain"
    assert found.summary == ("1 worker, no long waits. 3 runs failed recently. 578 older dead letters remain.")


def test_dead_letters_that_grew_in_the_last_hour_are_told_with_the_newest_error():
    letter = failed("shop.tasks.charge_order", "shop.errors.OutOfOrder")
    found = health(row(dead=578, dead_letter=letter, counts={"dead": minutes(9, 8)}))
    assert found.level == "warn"
    assert said(found) == [
        (
            "Queue mail: 17 jobs died in the last hour. Dead letters now: 578. Latest: charge_order, OutOfOrder.",
            "queue_change mail state=dead",
        )
    ]


def test_what_died_and_was_requeued_is_over():
    assert health(row(dead=0, counts={"dead": minutes(9)})).level == "good"


def test_of_many_queues_with_dead_letters_the_worst_are_named():
    rows = [row(f"queue-{n}", dead=1, counts={"dead": minutes(n)}) for n in range(1, 6)]
    lines = [line for line, _ in said(health(*rows))]
    assert [line.partition(":")[0] for line in lines[:3]] == ["Queue queue-5", "Queue queue-4", "Queue queue-3"]
    assert lines[3:] == ["Jobs died in 2 more queues in the last hour."]


@pytest.mark.parametrize(
    ("figures", "level"),
    [
        (TaskMetrics(done=2, failed=34), "bad"),
        (TaskMetrics(done=6, failed=4), "warn"),
        (TaskMetrics(done=90, failed=10), "plain"),
        (TaskMetrics(failed=9), "plain"),
    ],
)
def test_a_task_whose_runs_fail_is_named_when_there_are_enough_of_them(figures, level):
    assert health(row(tasks={"shop.tasks.charge_order": figures}, counts={"failed": minutes(4)})).level == level


@pytest.mark.parametrize("kind", ["dead_letter", "retrying_job"])
def test_a_failing_task_is_told_with_numbers_error_and_a_link(kind):
    task = "shop.tasks.charge_order"
    letter = failed(task, "shop.errors.OutOfOrder")
    found = health(row(tasks={task: TaskMetrics(done=2, failed=34)}, counts={"failed": minutes(4)}, **{kind: letter}))
    state = "dead" if kind == "dead_letter" else "retrying"
    assert said(found) == [
        (
            "charge_order in queue mail is failing: 34 of 36 runs since 03:00. Latest error: OutOfOrder.",
            f"queue_change mail state={state} task={task}",
        )
    ]


def test_the_error_of_another_task_is_not_told_of_it():
    letter = failed("other", "shop.errors.OutOfOrder")
    found = health(row(tasks={"ship": TaskMetrics(failed=34)}, counts={"failed": minutes(4)}, dead_letter=letter))
    assert "OutOfOrder" not in said(found)[0][0]


def test_a_task_that_fails_no_more_is_not_told():
    found = health(row(tasks={"a.ship": TaskMetrics(failed=34)}, counts={"failed": minutes(34, *[0] * 6)}))
    assert found.level == "good"


@pytest.mark.parametrize(
    ("job", "is_hung"),
    [
        (running(seconds=7000.0, usual_seconds=2.0), True),
        (running(seconds=15.0, usual_seconds=2.0), False),
        (running(seconds=3.0, time_limit=2.0), True),
        (running(seconds=4000.0), True),
        (running(seconds=3000.0), False),
    ],
)
def test_jobs_that_look_hung_are_told(job, is_hung):
    found = health(row(running=1), workers=[worker(job)])
    assert (found.level == "warn") is is_hung
    if is_hung:
        assert said(found)[0][0].startswith("1 job seems to hang: resize in queue mail, running for ")
        assert said(found)[0][1] == "job_changelist"


@pytest.mark.parametrize(
    ("oldest", "waits", "done", "is_behind"),
    [
        (90.0, minutes(*[100] * 5, *[100] * 5, *[900] * 5), minutes(*[1] * 15), True),
        (90.0, minutes(*[100] * 15), minutes(*[1] * 15), False),
        (30.0, minutes(*[100] * 10, *[900] * 5), minutes(*[1] * 15), False),
        (90.0, minutes(), minutes(), True),
    ],
)
def test_a_queue_whose_waits_grow_falls_behind(oldest, waits, done, is_behind):
    waiting = row(queued=5, oldest_seconds=oldest, counts={"wait_ms": waits, "succeeded": done})
    assert is_falling_behind(waiting) is is_behind
    assert (health(waiting).level == "warn") is is_behind


def test_a_long_wait_is_told_with_a_link():
    assert said(health(row(queued=5, oldest_seconds=900.0))) == [
        ("Queue mail: the oldest job has been waiting for 15 min.", "queue_change mail")
    ]


@pytest.mark.parametrize(
    ("change", "is_it"),
    [
        ({}, False),
        ({"last_claim_seconds": 90.0}, True),
        ({"last_claim_seconds": 90.0, "is_quiet": True}, False),
        ({"last_claim_seconds": 90.0, "lease_left_seconds": -1.0}, False),
        ({"last_claim_seconds": 90.0, "running": [running()]}, False),
        ({"last_claim_seconds": None}, False),
    ],
)
def test_a_worker_that_is_idle_and_does_not_ask_for_work_is_told(change, is_it):
    one = replace(worker(), **change)
    assert is_silent(one) is is_it
    told = [line for line, _ in said(health(row(), workers=[one]))]
    assert ("1 idle worker has stopped asking for work: web1:7." in told) is is_it


def test_the_worst_comes_first_and_gives_the_colour():
    found = health(row(queued=5, oldest_seconds=900.0), workers=[], warnings=["volatile", "replica"])
    assert found.level == "bad"
    assert [problem.is_bad for problem in found.problems] == [True, True, False, False]
    assert found.problems[0].text == "No worker is running, so no jobs are processed. Start one:"


# -- from Redis to the page


def test_the_page_says_which_task_fails_with_a_link_that_leads_there(broker, viewer):
    broker.sign_on([QUEUE], "w1")
    line = serializer.dumps({"at": 1, "error_class": "shop.OutOfOrder", "error": "<b>", "traceback": "t" * 5000})
    for number in range(12):
        job = claimed_job(broker, worker="w2", body=body(number))
        broker.settle("w2", QUEUE, Settlement(bury=[job.id, 1, line], metrics=[(0, 0, 1, f"failed {MAIL}", 1)]))

    html = text(viewer.get(OVERVIEW))

    assert "send_order_mail in queue default is failing: 12 of 12 runs since" in html
    assert "Latest error: OutOfOrder." in html
    assert "12 jobs died in the last hour. Dead letters now: 12." in html
    assert f'href="{OVERVIEW}{QUEUE}/?state=dead&amp;task={MAIL}"' in html
    assert "All is well" not in html
    assert "rtq-banner rtq-good" not in html


def test_a_job_far_over_its_usual_time_is_told(redis, broker, viewer):
    finished_job(broker)
    limited = serializer.dumps({"task": MAIL, "time_limit": 0.0001})
    claimed_job(broker, worker="w2", body=limited)
    assert "1 job seems to hang: send_order_mail" in text(viewer.get(OVERVIEW))


def test_it_takes_two_round_trips(broker, viewer, round_trips):
    dead_job(broker)
    claimed_job(broker)
    round_trips.clear()
    viewer.get(OVERVIEW)
    assert len(round_trips) == 2


def test_declared_queues_that_nobody_serves_are_told_as_a_warning(declared):
    declared += ["calls", "reports"]

    found = health(row())

    assert said(found) == [("No worker serves these queues, which tasks or settings declare: calls, reports.", "")]
    assert found.level == "warn"


@pytest.mark.parametrize("rule", [False, True])
def test_the_page_shows_the_outbox_if_there_is_one(broker, viewer, rule):
    with override_settings(RTQ={"REDIS": broker.config.redis, "OUTBOX": rule}):
        html = text(viewer.get(OVERVIEW))
        get_broker().close()
    assert ("Outbox" in html) is rule
