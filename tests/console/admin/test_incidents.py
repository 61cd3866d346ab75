"""The banner of the overview: what is wrong, since when, and what ends it; green only if nothing is.

And the figures at its top: what is healthy is neither amber nor red.
"""

import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from django.test import override_settings

from django_rtq.console.admin.overview import figures, health_of, totals
from django_rtq.console.incidents import Action, Incident, Seen, Severity, find_incidents
from django_rtq.console.reading.overview import BlockedWorkflow
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.jobs import serializer
from tests.console.admin.conftest import MAIL, body, text
from tests.console.incidents.conftest import declared  # noqa: F401
from tests.console.incidents.overviews import ago, failed, minutes, overview, row, running, worker
from tests.support.jobs import QUEUE, claimed_job, settle

WELL = "All is well: 1 worker, no long waits."
OVERVIEW = "/admin/django_rtq/queue/"


def url(name, *args, query=None):
    """A short form of a URL."""
    return " ".join([name, *args, *(f"{key}={value}" for key, value in (query or {}).items() if value)])


@pytest.mark.parametrize("action", Action)
def test_every_action_has_a_link(action):
    incident = Incident(kind="no_worker", severity=Severity.WARNING, actions=(action,))
    (line,) = health_of([incident], overview(), url)["lines"]
    assert line["url"] or line["requeue_url"] or line["resume_url"]


def health(*rows, **options):
    """The banner."""
    seen = overview(*rows, **options)
    return health_of(find_incidents(Seen(overview=seen)), seen, url)


LEFT = "1 worker, no long waits. 3 runs failed recently. 578 older dead letters remain."


@pytest.mark.parametrize(
    ("queue", "level", "summary"),
    [
        (row(counts={"succeeded": minutes(5)}), "good", WELL),
        (row(dead=578, counts={"failed": minutes(3, 0)}), "plain", LEFT),
    ],
)
def test_it_is_green_when_nothing_is_wrong_and_no_dead_letters_are_left(queue, level, summary):
    found = health(queue)
    assert (found["level"], found["summary"], found["lines"]) == (level, summary, [])


def test_a_blocked_workflow_is_told_with_its_page_and_its_cure():
    flow = BlockedWorkflow(id="0123456789ab", name="flow", since=ago(7200))

    (line,) = health(row(), blocked=[flow])["lines"]

    assert line["url"] == "workflow_change 0123456789ab"
    assert line["command"] == "python manage.py rtq_workflows requeue 0123456789ab"
    (more,) = health(row(), blocked=[flow] * 4)["folded_lines"]
    assert more["url"] == "workflow_changelist state=blocked"


def test_a_failing_task_is_told_with_pages_and_the_way_to_requeue():
    letter = failed("shop.tasks.charge_order", "shop.errors.OutOfOrder")
    counts = {"dead": minutes(9, 8)}

    (line,) = health(row(dead=1578, dead_letter=letter, counts=counts))["lines"]

    assert (line["subject"], line["figure"], line["kind"]) == ("Queue mail", "1,578", "Dead letters")
    assert line["text"].startswith("17 jobs died in the last hour. Dead letters now: 1,578.")
    assert line["url"] == "queue_change mail state=dead"
    assert line["requeue_url"] == "job_bulk_requeue q=queue:mail state:dead"
    assert line["since_text"].startswith("since ")
    assert line["since_text"].endswith(" (66 s)")


@pytest.mark.parametrize(
    ("queue", "warnings", "since"),
    [
        (row(dead=9, counts={"dead": [1] * 60}), [], "for more than 59 min"),  # it began before the data
        (row(scheduled=1, scheduler_seconds=200_000.0), [], r"since 2026-01-31 \d\d:\d\d \(2 d\)"),
        (row(), ["volatile"], ""),
    ],
)
def test_it_is_told_since_when_as_far_as_that_is_known(queue, warnings, since):
    (line,) = health(queue, warnings=warnings)["lines"]
    assert re.fullmatch(since, line["since_text"])
    assert bool(line["url"] or line["links"]) is not bool(warnings)


def test_a_hung_job_has_its_page_and_that_of_all_running_jobs():
    (line,) = health(row(), workers=[worker(running(seconds=9000.0))])["lines"]
    assert line["url"] == "job_change a queue=mail"
    task = ("Show the task", "registeredtask_change shop.tasks.resize")
    assert line["links"] == [("Show running jobs", "job_changelist"), task]


def test_of_many_incidents_of_a_kind_the_worst_are_shown():
    rows = [row(f"queue-{n}", dead=1, counts={"dead": minutes(n)}) for n in range(1, 6)]
    found = health(*rows)
    assert [line["subject"] for line in found["lines"]] == ["Queue queue-5", "Queue queue-4", "Queue queue-3"]
    assert [line["text"] for line in found["folded_lines"]] == ["2 more incidents of the kind Dead letters."]
    assert found["queues"] == [f"queue-{n}" for n in (5, 4, 3, 2, 1)]


def test_the_first_cards_are_critical_and_have_most_jobs_that_wait_longest():
    long_waits = [row(name, queued=n, oldest_seconds=900.0) for name, n in (("few", 2), ("many", 90))]
    late = row("late", scheduled=1, scheduler_seconds=900.0)
    found = health(*long_waits, late, row("paused", paused=True), workers=[worker(queues=["few", "many", "late"])])
    assert [(line["subject"], line["level"]) for line in found["lines"]] == [
        ("Queue late", "bad"), ("Queue many", "warn"), ("Queue few", "warn"),
    ]  # fmt: skip
    assert "Queue paused" in [line["subject"] for line in found["folded_lines"]]


@pytest.mark.parametrize(
    ("values", "figure"),
    [
        ({"share": 64, "duration": 90.0}, "64 %"),
        ({"failed": 8, "runs": 20}, "40 %"),
        ({"count": 17, "dead": 68}, "68"),
        ({"count": 1, "duration": 90.0}, "90 s"),
        ({}, ""),
    ],
)
def test_a_card_has_the_number_that_says_most(values, figure):
    incident = Incident(kind="no_worker", severity=Severity.WARNING, values=values)
    assert health_of([incident], overview(), url)["lines"][0]["figure"] == figure


def test_names_and_messages_are_cleaned():
    letter = replace(
        failed("shop.tasks.charge_order", "Bad"), errors=[{"error_class": "B\u202ead", "error": "\x1b[2J"}]
    )
    (line,) = health(row(dead=1, dead_letter=letter, counts={"dead": minutes(1)}))["lines"]
    assert r"B\u202ead: \x1b[2J" in line["text"]


# -- from Redis to the page


def test_the_page_says_which_task_fails_and_who_may_requeues_it(broker, viewer, operator):
    line = serializer.dumps({"at": 1, "error_class": "shop.OutOfOrder", "error": "<b>", "traceback": "t" * 5000})
    for number in range(12):
        job = claimed_job(broker, worker="w2", body=body(number))
        settle(broker, "bury", job, worker="w2", error=line)
        broker.settle("w2", QUEUE, Settlement(metrics=[(0, 0, 1, f"failed {MAIL}", 1)]))

    html = text(viewer.get(OVERVIEW))

    assert "send_order_mail in queue default is failing: 12 of its last 12 runs." in html
    assert "Latest error: OutOfOrder: &lt;b&gt;." in html
    dead = f"queue:{QUEUE} state:dead task:={MAIL} class:shop.OutOfOrder"
    requeue = f'href="/admin/django_rtq/job/bulk/requeue/?{urlencode({"q": dead})}"'
    assert requeue not in html
    assert requeue in text(operator.get(OVERVIEW))


@pytest.mark.parametrize("rule", [False, True])
def test_the_page_shows_the_outbox_if_there_is_one(broker, viewer, rule):
    with override_settings(RTQ={"REDIS": broker.config.redis, "OUTBOX": rule}):
        html = text(viewer.get(OVERVIEW))
        get_broker().close()
    assert ("Outbox" in html) is rule
    assert ("/admin/django_rtq/job/outbox/" in html) is rule


def cell(title, *rows, **options):
    """The text and the class of a figure."""
    (found,) = [each for each in totals(overview(*rows, **options), lambda *names: "") if each["title"] == title]
    return found["text"], found["css"]


@pytest.mark.parametrize(
    ("rows", "text", "css"),
    [
        ([row(), row("low")], "alive", ""),
        ([row(), row("legacy", scheduler_seconds=None)], "alive; none for legacy", ""),
        ([row(), row("legacy", scheduler_seconds=900.0, scheduled=1)], "15 min ago", "rtq-is-warn"),
        ([row(scheduler_seconds=900.0)], "15 min ago", ""),
    ],
)
def test_a_scheduler_is_missed_where_jobs_wait_for_their_time(rows, text, css):
    assert cell("Scheduler", *rows) == (text, css)


def test_four_figures_say_how_it_goes():
    assert cell("Workers", row(), workers=[worker(), worker(lease_left_seconds=-1.0)])[0] == "1"
    rows = [row("slow", oldest_seconds=900.0, counts={"succeeded": minutes(3, 3), "failed": minutes(1, 1)}, running=1)]
    rows += [row("paused", oldest_seconds=9000.0, paused=True), row(dead=2, counts={"dead": minutes(2)})]
    shown = figures(overview(*rows, workers=[worker(), worker(slots=4)]), lambda *names: " ".join(names))
    assert [(each["text"], each["note"], each["css"]) for each in shown] == [
        ("15 min", "slow", "rtq-is-bad"),
        ("25 %", "2 of 8 in 5 min", "rtq-is-bad"),
        ("1", "of 5 slots", ""),
        ("2", "2 in the last hour", "rtq-is-bad"),
    ]
    limited = figures(overview(row("slow", oldest_seconds=900.0, is_at_limit=True)), lambda *names: "")
    assert [(each["text"], each["css"]) for each in limited[:1]] == [("15 min", "")]
    empty = figures(overview(), lambda *names: "")
    assert [(each["text"], each["css"]) for each in empty] == [("–", "rtq-zero")] * 2 + [("0", "rtq-zero")] * 2  # noqa: RUF001
