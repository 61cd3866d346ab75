"""Incidents of queues."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from django.test import override_settings

from django_rtq.console.incidents import Action, Seen, Severity, worst_of
from django_rtq.console.incidents.queues import is_falling_behind, task_failing
from django_rtq.console.reading.details import ClientPause, TaskPause
from django_rtq.console.reading.metrics.reader import Deploy
from django_rtq.console.reading.metrics.task_failures import Runs, TaskFailures
from django_rtq.console.reading.overview import BlockedWorkflow, BusiestClient
from tests.console.incidents.overviews import (
    NOW,
    START,
    ago,
    failed,
    incidents,
    kinds,
    last_runs,
    minutes,
    overview,
    row,
    worker,
)

CHARGE = "shop.tasks.charge_order"
FAILS = {"failures": {CHARGE: last_runs((34, 36), hours=(60, 62))}}


BUSY, NONE = (0, 5000), (0, 0)
ROW_OF_FAILURES = last_runs(in_a_row=800, since=ago(3000))
HOLDS_TWO = (TaskPause(task="charge", seconds=60.0, by="", held=2),)


@pytest.mark.parametrize(
    ("failures", "severity"),
    [
        # 20 a minute, then all of them fail, and those before count for less and less
        (last_runs((0, 20), (0, 20), (0, 20), (0, 20), (4, 20)), None),
        (last_runs((0, 20), (0, 20), (0, 20), (0, 10), (10, 10)), Severity.CRITICAL),
        (last_runs(BUSY, BUSY, BUSY, BUSY, (400, 5000)), None),
        (last_runs(BUSY, BUSY, BUSY, BUSY, (5000, 5000)), Severity.CRITICAL),
        # all failed in a row, however busy it was in the same minute
        (last_runs(BUSY, BUSY, BUSY, BUSY, (10, 50_000), in_a_row=10), Severity.CRITICAL),
        (last_runs(BUSY, BUSY, BUSY, BUSY, (9, 50_000)), None),
        # a part of them fails
        (last_runs(*[(30, 100)] * 5), Severity.WARNING),
        (last_runs(*[(60, 100)] * 5), Severity.CRITICAL),
        (last_runs(*[(10, 100)] * 5), None),
        # healed
        (last_runs((40, 40), (40, 40), NONE, (0, 5), (0, 5)), None),
        (last_runs((40, 40), (40, 40), NONE, (0, 5), (0, 4)), Severity.CRITICAL),
        (last_runs((40, 40), NONE, NONE, NONE, NONE, NONE), None),
        # too few
        (last_runs((9, 9)), None),
    ],
)
def test_a_task_whose_last_runs_fail_is_told_when_there_are_enough_of_them(failures, severity):
    found = incidents(row(failures={CHARGE: replace(failures, hours=Runs(0, 38_000))}))
    assert [(each.kind, each.severity) for each in found] == ([("task_failing", severity)] if severity else [])


@pytest.mark.parametrize("base", [0, 3])  # percent of its runs that always fail
@pytest.mark.parametrize("begins", [5, 50])  # seconds after a minute has begun
@pytest.mark.parametrize("seconds", [30, 100, 300])
@pytest.mark.parametrize("rate", [1, 10, 100])  # runs a second
def test_a_task_that_was_failing_heals_once(base, begins, seconds, rate):
    def runs_of(second):
        """The runs of one second: how many failed, and how many there were."""
        if begins <= second < begins + seconds:
            return Runs(rate, rate)
        before, now = (rate * (second + each) * base // 100 for each in (0, 1))
        return Runs(now - before, rate)

    counts = dict[int, Runs]()
    levels = []
    for second in range(-600, begins + seconds + 400):
        minute = int(NOW.timestamp()) // 60 + second // 60
        counts[minute] = counts.get(minute, Runs()) + runs_of(second)
        if second % 5 == 0:
            failures = {CHARGE: TaskFailures(minutes={m: runs for m, runs in counts.items() if m > minute - 5})}
            at = datetime.fromtimestamp(int(NOW.timestamp()) // 60 * 60 + second + 1, timezone.utc)
            found = list(task_failing.find(Seen(overview=replace(overview(row(failures=failures)), now=at))))
            levels.append((second, found[0].severity if found else None))
    changes = [(at, level) for (at, level), (_, before) in zip(levels[1:], levels, strict=False) if level is not before]
    told = [level for _, level in changes]
    assert None not in told[:-1]
    assert not told or told[-1] is None
    healed = told[told.index(Severity.CRITICAL) :] if Severity.CRITICAL in told else told
    assert Severity.CRITICAL not in healed[1:]
    assert not changes or changes[-1][0] - begins - seconds < 125


@pytest.mark.parametrize(
    ("hours", "severity"),
    [((34, 36), Severity.CRITICAL), ((4, 10), Severity.WARNING), ((10, 100), None), ((9, 9), None)],
)
def test_of_a_task_that_runs_seldom_two_hours_count(hours, severity):
    found = incidents(row(failures={CHARGE: last_runs((1, 2), hours=hours)}))
    assert [(each.kind, each.severity) for each in found] == ([("task_failing", severity)] if severity else [])


@pytest.mark.parametrize(
    ("options", "details", "found"),
    [
        ({"failure_rate": 0.1}, {"failures": {CHARGE: last_runs((10, 100))}}, ["task_failing"]),
        ({"dead_letters": 18}, {"dead": 578, "counts": {"dead": minutes(17)}}, []),
        ({"dead_letters": 18}, {"dead": 578, "counts": {"dead": minutes(18)}}, ["dead_letters"]),
        ({"oldest_seconds": 20}, {"queued": 5, "oldest_seconds": 21.0}, ["long_wait"]),
        ({"oldest_seconds": 20}, {"queued": 5, "oldest_seconds": 19.0}, []),
        # a task failed a while ago, and others fail now
        (
            {},
            {
                "failures": {"ship": last_runs((1, 1), hours=(1, 51))},
                "counts": {"failed": minutes(1)},
            },
            [],
        ),
        # failed jobs wait long for their next attempts
        ({}, {"failures": {CHARGE: ROW_OF_FAILURES}, "retrying": 800}, ["task_failing"]),
        ({}, {"failures": {CHARGE: ROW_OF_FAILURES}}, []),
        # dead letters do not grow, or were requeued
        ({}, {"dead": 578}, []),
        ({}, {"counts": {"dead": minutes(9)}}, []),
        # waits in a queue that nobody serves are a part of that
        ({}, {"name": "calls", "queued": 5, "oldest_seconds": 90.0}, ["queue_unserved"]),
        ({}, {"name": "calls", "queued": 5, "oldest_seconds": 900.0}, ["queue_unserved"]),
        # jobs of paused tasks need no scheduler
        ({}, {"scheduled": 2, "scheduler_seconds": 900.0, "paused_tasks": HOLDS_TWO}, ["task_paused"]),
        ({}, {"scheduled": 3, "scheduler_seconds": 900.0, "paused_tasks": HOLDS_TWO}, ["no_scheduler", "task_paused"]),
    ],
)
def test_what_is_told_and_when_it_is_a_setting(options, details, found):
    with override_settings(RTQ={"INCIDENTS": options}):
        assert kinds(row(**details)) == found


@pytest.mark.parametrize(
    ("kind", "actions"),
    [("dead_letter", (Action.SHOW_DEAD, Action.REQUEUE)), ("retrying_job", (Action.SHOW_RETRYING,))],
)
def test_a_failing_task_is_told_with_its_error_and_when_it_began(kind, actions):
    job = failed(CHARGE, "shop.errors.OutOfOrder", "no answer\nfrom the bank")
    counts = {"failed": minutes(1, *[0] * 20, 4, 0, 7)}

    (found,) = incidents(row(**FAILS, counts=counts, **{kind: job}))

    assert (found.queue, found.task, found.error_class) == ("mail", CHARGE, "shop.errors.OutOfOrder")
    assert found.text == (
        "charge_order in queue mail is failing: 34 of its last 36 runs. Latest error: OutOfOrder: no answer."
    )
    assert (found.since, found.began_earlier) == (START + timedelta(minutes=57), False)
    assert found.actions == actions


@pytest.mark.parametrize(("minute", "is_told"), [(46.9, False), (47, True), (57.9, True), (58, False)])
def test_a_failing_task_is_told_with_the_version_that_was_deployed_before(minute, is_told):
    deploys = [Deploy(at=START + timedelta(minutes=each), version=f"v{each}") for each in (minute, 1)]
    counts = {"failed": minutes(4, 0, 7)}

    (found,) = incidents(row(**FAILS, counts=counts), deploys=deploys)

    assert found.since == START + timedelta(minutes=57)
    assert (f"It began after the start of version v{minute}." in found.text) is is_told
    assert "v1." not in found.text


DEPLOYED = [Deploy(at=START, version="v44"), Deploy(at=START - timedelta(days=1), version="v43")]


def by_version(new, old, *minutes, deploys=DEPLOYED):
    """What is wrong with a task of which so many runs failed with v44 and v43, and lately."""
    failures = {CHARGE: last_runs(*minutes, v44=new, v43=old)}
    return incidents(row(failures=failures), deploys=deploys)


def test_a_task_fails_more_often_with_a_new_version():
    (found,) = by_version((103, 1000), (50, 1000), (10, 100))

    text = "charge_order in queue mail fails more often since a deploy. v44: 10.3 %, v43: 5 %."
    assert (found.kind, found.severity, found.text) == ("version_fails_more", "warning", text)
    assert (found.since, found.task, found.queue) == (START, CHARGE, "mail")


@pytest.mark.parametrize(
    ("new", "old", "lately"),
    [
        ((60, 1000), (50, 1000), (6, 100)),  # by a fifth
        ((10, 49), (0, 1000), (1, 10)),  # too few runs
        ((6, 60), (3, 60), (6, 60)),  # by chance
        ((1500, 100_000), (500, 100_000), (2, 100)),  # three times as often, but still seldom
        ((300, 3000), (30, 3000), (2, 500)),  # it is well again
        ((500, 1000), (50, 1000), (30, 60)),  # it is failing: that is told
    ],
)
def test_another_share_of_failures_is_not_always_that_of_a_version(new, old, lately):
    assert "version_fails_more" not in [each.kind for each in by_version(new, old, lately)]


def test_after_a_rollback_the_version_that_failed_does_not_count():
    assert by_version((103, 1000), (50, 1000), (10, 100), deploys=DEPLOYED[::-1]) == []


def test_a_task_some_of_whose_runs_always_fail_fails_since_more_of_them_did():
    counts = {"failed": [3] * 57 + [3, 50, 60], "succeeded": [97] * 58 + [50, 40]}
    failures = {CHARGE: last_runs((50, 100), (60, 100), hours=(300, 5300))}
    (incident,) = incidents(row(failures=failures, counts=counts))
    assert incident.since == START + timedelta(minutes=58)


def test_failures_that_began_before_the_series_are_older():
    (found,) = incidents(row(**FAILS, counts={"failed": [1] * 60}))
    assert (found.since, found.began_earlier) == (START, True)


def test_nobody_knows_since_when_a_task_fails_if_others_of_its_queue_fail_as_well():
    fails, ship = last_runs((34, 36), hours=(34, 36)), last_runs((1, 9), hours=(9, 59))
    for failures, last in (({CHARGE: fails}, 43), ({CHARGE: fails, "ship": ship}, 35)):
        assert incidents(row(failures=failures, counts={"failed": minutes(last)}))[0].since is None


def test_since_when_all_runs_of_a_task_fail_is_known_to_the_second():
    (found,) = incidents(row(failures={CHARGE: last_runs((34, 34), in_a_row=34, since=ago(72))}))

    assert (found.since, found.began_earlier) == (ago(72), False)
    assert found.text == "charge_order in queue mail is failing: 34 of its last 34 runs."


def test_the_error_of_another_task_is_not_told_of_it():
    letter = failed("other", "shop.errors.OutOfOrder")
    (found,) = incidents(row(failures={"ship": last_runs((34, 34))}, dead_letter=letter))
    assert "OutOfOrder" not in found.text
    assert found.error_class == ""


def test_dead_letters_that_grew_in_the_last_hour_are_told_with_the_newest_error():
    letter = failed(CHARGE, "shop.errors.OutOfOrder")

    (found,) = incidents(row(dead=578, dead_letter=letter, counts={"dead": minutes(9, 8)}))

    assert (found.kind, found.severity, found.queue) == ("dead_letters", Severity.WARNING, "mail")
    assert found.since == START + timedelta(minutes=58)
    assert found.text == (
        "Queue mail: 17 jobs died in the last hour. Dead letters now: 578. Latest: charge_order, OutOfOrder."
    )
    assert found.actions == (Action.SHOW_DEAD, Action.REQUEUE)


def test_a_long_error_shows_that_it_was_cut():
    letter = failed(CHARGE, "shop.errors.OutOfOrder", "no stock " * 20)

    (found,) = incidents(row(dead=1, dead_letter=letter, counts={"dead": minutes(1)}))

    assert found.text.endswith("no stock no stoc….")


def test_a_long_wait_is_told_with_how_many_wait():
    (found,) = incidents(row(queued=5, clients=2, oldest_seconds=900.0))

    assert (found.kind, found.queue, found.since) == ("long_wait", "mail", ago(900))
    assert found.text == "Queue mail: the oldest job has been waiting for 15 min. Waiting: 5 (clients: 2)."


def test_waits_in_a_paused_queue_are_no_surprise():
    waiting = {"queued": 5, "oldest_seconds": 900.0, "paused": True, "paused_seconds": 300.0}
    (found,), (by_eve,) = incidents(row(**waiting)), incidents(row(**waiting, paused_by="eve"))
    assert (found.kind, found.since) == ("queue_paused", ago(300))
    assert (found.text, by_eve.text) == ("Queue mail is paused.", "Queue mail is paused. Paused by eve.")
    assert Action.RESUME in found.actions


def test_jobs_that_have_lost_their_place_are_told():
    (found,) = incidents(row(queued=2, lost=2, lost_seconds=60.0))

    assert (found.kind, found.queue, found.since) == ("jobs_lost_place", "mail", ago(60))
    assert found.text.startswith("Queue mail: 2 jobs have a record, but no place in Redis")


def test_a_paused_task_is_one_incident_of_all_queues():
    pauses = [TaskPause(task="shop.tasks.charge", seconds=seconds, by="eve", held=2) for seconds in (60.0, 300.0, None)]
    rows = [row(name, paused_tasks=(pause,)) for name, pause in zip(("low", "mail", "resumed"), pauses, strict=True)]

    (found,) = incidents(*rows)

    assert (found.kind, found.since, found.task) == ("task_paused", ago(300), "shop.tasks.charge")
    assert found.text == "Task charge is paused in low (2), mail (2), and holds 4 jobs. Paused by eve."


@pytest.mark.parametrize(
    ("held", "queues"),
    [
        ([0, 0, 3, 0, 0, 0, 0], "q2"),
        ([0, 1, 20_000], "q2 (20,000), q1 (1)"),
        ([0, 0], "q0, q1"),
        ([1, 2, 3, 4, 5, 6], "q5 (6), q4 (5), q3 (4), q2 (3), q1 (2) and 1 more"),
    ],
)
def test_the_queues_that_hold_jobs_of_a_paused_task_are_named(held, queues):
    pauses = [TaskPause(task="charge", seconds=9.0, by="", held=number) for number in held]
    (found,) = incidents(*(row(f"q{n}", paused_tasks=(pause,)) for n, pause in enumerate(pauses)), workers=[worker()])
    assert f"is paused in {queues}, and holds" in found.text


def test_a_paused_client_is_told_and_is_no_fault():
    pauses = [ClientPause(client="north", seconds=each, by=by, held=2) for each, by in ((60.0, "eve"), (300.0, "ada"))]

    (found,) = incidents(
        *(row(name, paused_clients=(pause,)) for name, pause in zip(("low", "mail"), pauses, strict=True))
    )

    assert (found.kind, found.client, found.since, found.severity) == (
        "client_paused",
        "north",
        ago(300),
        Severity.INFO,
    )
    assert found.text == "Client north is paused in low (2), mail (2), and holds 4 jobs. Paused by ada."
    assert worst_of([found]) == "ok"


def test_a_workflow_that_has_been_blocked_for_an_hour_is_told_with_its_cure():
    flows = [
        BlockedWorkflow(id=f"0123456789a{name}", name=f"flow {name}", since=ago(seconds))
        for name, seconds in (("b", 7200), ("c", 3600), ("d", 3599))
    ]

    first, second = incidents(row(), blocked=flows)

    assert (first.kind, first.severity, first.since) == ("workflow_blocked", Severity.WARNING, ago(7200))
    assert first.text == "Workflow flow b has been blocked by dead jobs for 2 h. Requeue them, or discard them:"
    assert first.command == "python manage.py rtq_workflows requeue 0123456789ab"
    assert first.actions == (Action.SHOW_WORKFLOW,)
    assert first.id != second.id
    assert first.as_dict()["workflow"] == "0123456789ab"


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
    assert kinds(waiting) == ["falling_behind"] * is_behind


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({}, "It is falling behind: its workers do less than comes."),
        ({"is_at_limit": True}, "The queue runs as many jobs as its limit max_running allows."),
        ({"is_at_rate": True}, "Its rate lets no job start at this moment."),
    ],
)
def test_why_waits_grow_is_told(limits, why):
    counts = {"wait_ms": minutes(*[0] * 5), "succeeded": minutes(*[0] * 5)}
    (found,) = incidents(row(queued=5, clients=2, oldest_seconds=90.0, counts=counts, **limits))

    waits = "Queue mail: its oldest job has been waiting for 90 s, and waits are growing."
    assert found.text == f"{waits} {why} Waiting: 5 (clients: 2)."


@pytest.mark.parametrize(("share", "oldest", "is_it"), [(0.93, 90.0, True), (0.79, 90.0, False), (0.93, 20.0, False)])
def test_a_client_that_takes_most_of_the_work_while_others_wait_is_told(share, oldest, is_it):
    steady = {"wait_ms": minutes(*[100] * 15), "succeeded": minutes(*[1] * 15)}
    found = incidents(
        row(queued=5, clients=2, oldest_seconds=90.0, busiest=BusiestClient("acme", share, oldest), counts=steady)
    )
    assert [(each.kind, each.queue, each.client) for each in found] == [("busy_client", "mail", "acme")] * is_it
    if is_it:
        assert "client acme took 93 % of the work of the last hour" in found[0].text


@pytest.mark.parametrize("seconds", [500.0, None])
@pytest.mark.parametrize(("jobs", "is_it"), [({"scheduled": 1}, True), ({"retrying": 1}, True), ({"queued": 1}, False)])
def test_delayed_jobs_without_a_scheduler_are_told(jobs, is_it, seconds):
    found = incidents(row(scheduler_seconds=seconds, **jobs))
    told = ("no_scheduler", Severity.CRITICAL, seconds and ago(seconds))
    assert [(each.kind, each.severity, each.since) for each in found] == [told] * is_it
