"""Incidents of workers, and of the code that they run."""

from dataclasses import replace

import pytest
from django.test import override_settings

from django_rtq.console.incidents import Action, Seen, Severity, find_incidents
from django_rtq.console.reading.details import UnknownTask
from tests.console.incidents.overviews import ago, incidents, kinds, overview, row, running, worker

LOST = {"lease_left_seconds": -1.0, "queues": ["mail"], "name": "w2", "host": "web2"}


@pytest.mark.parametrize(
    ("rows", "workers", "found"),
    [
        ([row(queued=1, oldest_seconds=1.0)], [worker()], []),
        ([], [], []),  # without queues no worker is missed
        ([row(queued=1)], [worker(**LOST), worker(queues=["low"])], ["queue_unserved", "worker_lost"]),
        ([row(queued=5, oldest_seconds=900.0)], [worker(is_quiet=True)], ["workers_quiet"]),
        ([row(queued=1)], [worker(is_quiet=True), worker()], []),  # others claim jobs
        ([row()], [worker(running(), last_claim_seconds=90.0)], []),  # a busy worker is not silent
        ([row()], [worker(running(seconds=3000.0))], ["job_hung"]),  # as the setting says
    ],
)
def test_what_is_wrong(rows, workers, found):
    with override_settings(RTQ={"INCIDENTS": {"running_seconds": 2000}}):
        assert kinds(*rows, workers=workers) == found


@pytest.mark.parametrize(("contact", "since"), [(900.0, ago(900)), (1.0, None), (None, None)])
def test_no_worker_is_told_alone_and_since_the_last_contact(contact, since):
    (found,) = incidents(row(queued=1, contact_seconds=contact, oldest_seconds=2.0), workers=[])

    assert (found.kind, found.severity, found.since) == ("no_worker", Severity.CRITICAL, since)
    assert found.command == "python manage.py rtq_worker --queues mail"
    assert found.text == "No worker is running, so no jobs are processed. Start one:"


@pytest.mark.parametrize(
    ("contact", "oldest", "since"),
    [(900.0, 100.0, ago(100)), (100.0, 900.0, ago(100)), (None, 100.0, ago(100)), (1.0, 100.0, None)],
)
def test_jobs_in_a_queue_that_nobody_serves_are_told(contact, oldest, since):
    (found,) = incidents(row("calls", queued=2, contact_seconds=contact, oldest_seconds=oldest), row(), lag=None)[:1]

    assert (found.kind, found.severity, found.queue, found.since) == (
        "queue_unserved",
        Severity.CRITICAL,
        "calls",
        since,
    )
    assert found.text == "Queue calls: 2 jobs wait, and no worker serves the queue. Start one:"
    assert found.command == "python manage.py rtq_worker --queues calls"


def test_declared_queues_that_nobody_serves_are_told_as_a_warning(declared):
    declared += ["calls", "reports"]

    (found,) = incidents(row())

    assert (found.kind, found.severity) == ("queues_without_worker", Severity.WARNING)
    assert found.text == "No worker serves these queues, which tasks or settings declare: calls, reports. Start one:"
    assert found.command == "python manage.py rtq_worker --queues calls,reports"
    declared += [f"t{number}" for number in range(5)]
    assert "calls, reports, t0, t1, t2 and 2 more. Start one:" in incidents(row())[0].text


def test_lost_workers_are_told_by_host_since_the_first_lease_expired():
    lost = [worker(name=f"w{n}", pid=n, lease_left_seconds=-float(n)) for n in (2, 3)]

    (found,) = incidents(row(), workers=[worker(), *lost])

    assert (found.kind, found.severity, found.host, found.since) == ("worker_lost", Severity.CRITICAL, "web1", ago(3))
    assert found.text == "Host web1: 2 workers have stopped responding, web1:2 among them. No job was running there."


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ([{}], "Running jobs that will be reclaimed shortly: 3."),
        (
            [{"queues": ["low"]}],
            "Running jobs that are reclaimed when a worker of these queues has started: 3 (mail).",
        ),
    ],
)
def test_it_is_told_who_takes_the_jobs_of_lost_workers_back(others, text):
    lost = worker(name="w2", host="web2", queues=["mail"], lease_left_seconds=-1.0, held=3)

    found = [each for each in incidents(row(), workers=[lost, *(worker(**other) for other in others)])]

    (found,) = [each for each in found if each.kind == "worker_lost"]
    assert found.text == f"Host web2: 1 worker has stopped responding (web2:7). {text}"


def test_if_all_workers_are_lost_none_is_running():
    lost = worker(lease_left_seconds=-60.0, held=1)
    found = incidents(row(queued=1, scheduler_seconds=500.0, scheduled=1, contact_seconds=900.0), workers=[lost])
    assert [(each.kind, each.since) for each in found] == [("no_worker", ago(900)), ("worker_lost", ago(60))]


@pytest.mark.parametrize(
    ("jobs", "severity", "text"),
    [
        ({"queued": 2}, Severity.CRITICAL, "All workers of low, mail are quiet: they claim no jobs, and 2 jobs wait."),
        (
            {"retrying": 1},
            Severity.CRITICAL,
            "All workers of low, mail are quiet: they claim no jobs, and 1 job waits.",
        ),
        ({}, Severity.WARNING, "All workers of low, mail are quiet: they claim no jobs, and 0 jobs wait."),
    ],
)
def test_queues_whose_workers_are_all_quiet_are_told(jobs, severity, text):
    quiet = [
        worker(is_quiet=True, quiet_seconds=each, quiet_by=f"ada{each:g}", name=f"w{each}") for each in (90.0, 60.0)
    ]

    (found,) = incidents(row(oldest_seconds=30.0, **jobs), row("low"), workers=quiet)

    assert (found.kind, found.severity, found.since) == ("workers_quiet", severity, ago(60))
    assert found.text == f"{text} Asked by ada60. Wake them:"
    assert found.command == "python manage.py rtq_workers wake --all"


def test_a_lost_worker_does_not_claim_for_quiet_ones():
    other = worker(queues=["other"])
    found = incidents(row(queued=1), workers=[worker(is_quiet=True), worker(lease_left_seconds=-1.0), other])
    assert [(each.kind, each.command) for each in found] == [
        ("workers_quiet", "python manage.py rtq_workers wake --queue low --queue mail"),
        ("worker_lost", ""),
    ]


@pytest.mark.parametrize(
    ("change", "is_it"),
    [
        ({}, False),
        ({"last_claim_seconds": 90.0}, True),
        ({"last_claim_seconds": 90.0, "is_quiet": True}, False),
        ({"last_claim_seconds": 90.0, "lease_left_seconds": -1.0}, False),
        ({"last_claim_seconds": None}, False),
    ],
)
def test_a_worker_that_is_idle_and_does_not_ask_for_work_is_told(change, is_it):
    found = [each for each in incidents(row(), workers=[worker(**change)]) if each.kind == "worker_silent"]

    assert [(each.host, each.since, each.text) for each in found] == (
        [("web1", ago(90), "Host web1: 1 idle worker has stopped asking for work (web1:7).")] if is_it else []
    )


@pytest.mark.parametrize(
    ("job", "is_hung"),
    [
        (running(seconds=7000.0, usual_seconds=2.0), True),
        (running(seconds=15.0, usual_seconds=2.0), False),
        (running(seconds=3.0, time_limit=2.0), True),
        (running(seconds=4000.0), True),
        (running(seconds=3000.0), False),
        (running(seconds=4000.0, usual_seconds=3000.0), False),
    ],
)
def test_jobs_that_look_hung_are_told_since_they_started(job, is_hung):
    found = incidents(row(running=1), workers=[worker(job)])

    assert [each.kind for each in found] == ["job_hung"] * is_hung
    for each in found:
        assert (each.queue, each.task, each.job_id) == ("mail", "shop.tasks.resize", "a")
        assert each.since == job.claimed_at
        assert each.text.startswith("1 job seems to hang: resize in queue mail, running for ")
        assert each.actions == (Action.SHOW_JOB, Action.SHOW_RUNNING)


def test_hung_jobs_of_a_task_are_one_incident():
    jobs = [running(id=str(seconds), seconds=seconds) for seconds in (4000.0, 5000.0)]
    (found,) = incidents(row(), workers=[worker(*jobs)])
    assert (found.job_id, found.values["count"], found.since) == ("5000.0", 2, ago(5000))


@pytest.mark.parametrize(
    ("workers", "found"),
    [
        ([worker()], []),
        ([worker(host="web2")], ["host_without_worker"]),
        ([], ["host_without_worker"]),
        ([worker(lease_left_seconds=-1.0)], ["host_without_worker", "worker_lost"]),
        ([worker(last_claim_seconds=90.0), worker(host="web2", lease_left_seconds=-1.0)], ["worker_silent"]),
        ([worker(running(seconds=9000.0))], []),
    ],
)
def test_of_a_host_only_its_workers_count(workers, found):
    assert [each.kind for each in find_incidents(Seen(overview=overview(row(), workers=workers), host="web1"))] == found


def test_a_host_hears_of_its_workers_however_many_others_have_lost_theirs():
    lost = [worker(name=f"w{n}", host=f"host{n}", lease_left_seconds=-1.0) for n in range(60)]
    workers = [*lost, worker(name="ours", lease_left_seconds=-1.0), worker()]
    (found,) = find_incidents(Seen(overview=overview(row(), workers=workers), host="web1"))
    assert (found.kind, found.host) == ("worker_lost", "web1")


def unknown(task="shop.tasks.charge", *, seconds=10, jobs=5, workers=("web1:7:x", "web2:8:y")):
    return UnknownTask(task=task, since=ago(seconds), jobs=jobs, workers=workers)


def with_unknown(*tasks, **details):
    return replace(row(**details), unknown_tasks=tasks)


@pytest.mark.parametrize(("seconds", "severity"), [(299, Severity.WARNING), (300, Severity.CRITICAL)])
def test_a_task_that_workers_do_not_know_is_critical_after_a_deploy(seconds, severity):
    (found,) = incidents(with_unknown(unknown(seconds=seconds)))

    assert (found.kind, found.severity, found.since) == ("task_unknown", severity, ago(seconds))
    assert (found.queue, found.task) == ("mail", "shop.tasks.charge")
    assert found.actions == (Action.SHOW_RETRYING, Action.SHOW_WORKERS)
    assert found.text == (
        "Queue mail: 5 jobs wait, because workers that took them do not know their task shop.tasks.charge: web1:7, "
        "web2:8. Start workers with the code that declares the task, in an app of INSTALLED_APPS or in a module of "
        'RTQ["TASK_MODULES"]. Jobs that have waited for 24 h are dead.'
    )


def test_the_task_with_most_jobs_comes_first():
    found = incidents(with_unknown(unknown("a"), unknown("b", jobs=9)))
    assert [incident.task for incident in found] == ["b", "a"]


def test_workers_of_several_projects_are_named_with_their_hosts():
    workers = [worker(project="shop"), worker(project="crm", host="web2"), worker(project="crm", host="web1")]

    (found,) = incidents(row(), workers=workers)

    assert (found.kind, found.severity) == ("several_projects", Severity.CRITICAL)
    assert found.text == (
        "Workers of several projects take jobs from each other, because all use this Redis with the prefix rtq: "
        'crm (web1, web2), shop (web1). Set another RTQ["PREFIX"] or database in each project.'
    )


@pytest.mark.parametrize(
    "other", [{"project": "shop"}, {"project": ""}, {"project": "crm", "lease_left_seconds": -1.0}]
)
def test_workers_of_one_project_are_not(other):
    assert "several_projects" not in kinds(row(), workers=[worker(project="shop"), worker(**other)])
