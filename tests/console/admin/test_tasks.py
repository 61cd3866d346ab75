"""The page of one task, and pausing and resuming it."""

import re
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry

from django_rtq import task
from django_rtq.console.admin.pages import tasks
from django_rtq.console.histogram import bucket_of
from django_rtq.console.subjects.tasks import Tasks
from django_rtq.core.tasks import registry
from tests.console.admin.conftest import MAIL, body, logged, text
from tests.console.lua.test_dead_letters import bury
from tests.console.lua.test_task_metrics import tell
from tests.support.jobs import QUEUE, claim, queued_job, scheduled_job

LIST = "/admin/django_rtq/registeredtask/"
PAGE = f"{LIST}{MAIL.replace('_', '_5F')}/"
OTHER = f"{LIST}ship/"


def charge(order_id, api_token="swordfish", amount=5):
    """Charge an order."""


def rows_of(answer):
    """The rows of the table of its jobs, by queue."""
    (table,) = answer.context["tables"]
    return {re.search(r"<a [^>]*>(.*?)</a>", row)[1]: row for row in table["rows"].split("\n")}


def test_it_shows_runs_and_charts(broker, operator):
    tell(broker, "done ship", 6, "failed ship", 3, "crashed ship", 1)
    tell(broker, f"r{bucket_of(2.0)} ship", 9, f"w{bucket_of(5)} ship", 6)

    answer = operator.get(OTHER)

    assert [cell["text"] for cell in answer.context["totals"]][:4] == ["6", "3", "1", "33 %"]
    assert next(chart["rows"][-1][1] for chart in answer.context["charts"]) == ["6", "2", "1"]
    assert text(answer).count('<svg class="rtq-chart') == 3
    assert "not registered in this process" in text(answer)


def test_its_jobs_are_counted_with_links_to_the_filtered_lists(broker, operator):
    queued_job(broker, body=body(1))
    queued_job(broker, body=body(1), queue="low")
    scheduled_job(broker, body=body(1), queue="low")
    queued_job(broker, body=body(1, task="other"), queue="idle")

    answer = operator.get(PAGE)

    rows = rows_of(answer)
    cells = re.findall(r'data-rtq-label="[^"]*">(.*?)</td>', rows["low"])
    assert [re.sub("<.*?>", "", cell) for cell in cells] == ["1", "1", "0", "0", "0"]
    assert "idle" not in rows
    (scheduled,) = re.findall(r'href="([^"]*state=scheduled[^"]*)"', rows["low"])
    assert text(operator.get(unescape(scheduled))).count('name="id"') == 1
    assert "Enqueue …" in text(answer)
    assert "Send" in text(answer)  # the docstring


def test_of_many_queues_those_with_most_jobs_are_shown(broker, rtq, operator, monkeypatch):
    monkeypatch.setattr(tasks, "MAX_QUEUES_SHOWN", 3)
    for number in range(5):
        for _ in range(number + 1):
            queued_job(broker, body=body(1), queue=f"q{number}")
    rtq.tasks[MAIL].pause("q1", by="ada")

    few, every = operator.get(PAGE), operator.get(f"{PAGE}?queues=all")

    assert list(rows_of(few)) == ["q1", "q4", "q3"]
    assert list(rows_of(every)) == ["q1", "q4", "q3", "q2", "q0"]
    assert f'<a href="{PAGE}?queues=all">Other queues: 2</a>' in text(few)
    assert "Other queues" not in text(every)


def test_its_signature_and_options_are_shown_without_secrets(broker, viewer):
    task(name="shop.charge", unique=["order_id"], retry_on=(OSError, KeyError), max_attempts=2)(charge)
    try:
        html = unescape(text(viewer.get(f"{LIST}shop.charge/")))
    finally:
        registry._tasks.pop("shop.charge")

    assert "(order_id, api_token='********************', amount=5)" in html
    assert "swordfish" not in html
    assert "Options: max_attempts=2, retry_on=OSError, KeyError, unique=order_id" in html


def test_its_dead_letters_are_grouped_by_error(broker, operator):
    bury(broker, "ship", kind="a.OutOfOrder", message="no answer")
    bury(broker, "ship", kind="a.OutOfOrder", message="no answer")
    bury(broker, "other")

    html = text(operator.get(OTHER))

    assert "OutOfOrder" in html
    assert "no answer" in html
    assert "ValueError" not in html
    assert f"/job/bulk/requeue/?q=queue%3A{QUEUE}+state%3Adead+task%3A%3Dship+class%3Aa.OutOfOrder" in html


def test_what_is_done_with_all_its_jobs_spares_a_task_whose_name_ends_so(broker, operator):
    bury(broker, "ship"), bury(broker, "shop.ship")
    links = re.findall(r'href="([^"]*/job/bulk/(?:requeue|discard)/[^"]*)"', text(operator.get(OTHER)))

    assert len(links) == 3  # of the group and of the task
    for link in links:
        assert re.search(r"(Requeue|Discard) 1 dead letter", text(operator.get(unescape(link))))


def test_of_many_groups_the_latest_are_shown(broker, operator, monkeypatch):
    monkeypatch.setattr(tasks, "MAX_GROUPS", 2)
    for number in range(5):
        bury(broker, "ship", kind=f"a.Error{number}")

    answer = operator.get(OTHER)

    assert answer.context["group_tables"][0]["rows"].count("<tr>") == 2
    assert "Older groups: 3</a>" in text(answer)


@pytest.mark.parametrize("name", ["nosuch", "a.b.c", "_2F", "x" * 300])
def test_a_task_that_nobody_knows_is_not_found(broker, operator, name):
    assert operator.get(f"{LIST}{name}/").status_code == 404


def test_a_list_that_was_not_searched_to_its_end_says_so(broker, operator, monkeypatch):
    for name in ("MAX_SEARCHED", "LEAST_SEARCHED"):
        monkeypatch.setattr(f"django_rtq.console.reading.task_details.{name}", 2)
    for _ in range(3):
        queued_job(broker, body=body(1))
    assert "≥ 2" in text(operator.get(PAGE))
    assert "Open the list to search on." in text(operator.get(PAGE))


def test_lists_jobs_groups_and_incidents_link_to_it(broker, operator, jobs):
    for page in (LIST, "/admin/django_rtq/deadletter/", f"/admin/django_rtq/job/{jobs.dead.id}/"):
        assert f'href="{PAGE}"' in text(operator.get(page))
    tell(broker, f"done {MAIL}", 1, f"failed {MAIL}", 99)
    assert f'href="{PAGE}"' in text(operator.get("/admin/django_rtq/queue/"))


def listed(client, **query):
    """The names of the tasks on a page of the list."""
    return [row.task for row in client.get(LIST, query).context["found"].rows]


def test_the_list_is_searched_and_sorted_the_worst_first_and_our_own_tasks_last(broker, viewer, monkeypatch):
    monkeypatch.setattr(Tasks, "per_page", 1000)
    for number in range(3):
        tell(broker, f"done shop.many_{number}", 100 - number, f"failed shop.many_{number}", 10 * number)

    assert listed(viewer, search="many_") == ["shop.many_2", "shop.many_1", "shop.many_0"]  # those that fail most
    assert listed(viewer, search="MANY_", sort="-task") == ["shop.many_2", "shop.many_1", "shop.many_0"]
    assert listed(viewer, search="many_", sort="done") == ["shop.many_0", "shop.many_1", "shop.many_2"]
    assert listed(viewer, sort="failure_rate")[:3] == ["shop.many_2", "shop.many_1", "shop.many_0"]
    own = "django_rtq.internal_tasks.run_bulk_action"
    assert own not in listed(viewer)
    tell(broker, f"failed {own}", 1)
    assert listed(viewer)[-1] == own


@pytest.mark.parametrize(
    "name", ["nosuch", "x" * 3000, "a%00b", "django_5Frtq.internal_5Ftasks.run_5Fbulk_5Faction", "_20"]
)
def test_only_tasks_that_are_known_and_not_internal_are_paused(broker, readers, operator, name):
    queued_job(broker, body=body(task="django_rtq.internal_tasks.run_bulk_action"))

    assert operator.post(f"{LIST}{name}/pause/").status_code == 404

    assert readers.queues.get(QUEUE).paused_tasks == ()
    assert logged() == []


def test_a_task_that_only_redis_knows_is_paused(broker, readers, operator):
    queued_job(broker, body=body(task="ship"))
    queued_job(broker, body=body(task="ship\0ment"))

    assert operator.post(f"{LIST}ship/pause/").status_code == 302
    assert operator.post(f"{LIST}ship%00ment/pause/").status_code == 404

    assert [pause.task for pause in readers.queues.get(QUEUE).paused_tasks] == ["ship"]
    assert [entry.object_id for entry in LogEntry.objects.all()] == ["ship"]


def test_in_one_queue_and_from_the_list(broker, operator):
    broker.register_queues([QUEUE, "mail"])
    queued_job(broker, body=body(task=MAIL))

    answer = operator.post(f"{PAGE}pause/", {"queue": "mail", "next": LIST}, follow=True)

    assert answer.redirect_chain == [(LIST, 302)]
    assert [(row.task, row.paused_in) for row in answer.context["found"].rows if row.pauses] == [(MAIL, ["mail"])]
    assert f"{PAGE}resume/" in text(answer)
    mail, other = operator.get(PAGE).context["tables"][0]["rows"].split("\n")
    for row, queue, verb in ((mail, "mail", "resume"), (other, QUEUE, "pause")):
        assert f'formaction="{PAGE}{verb}/?queue={queue}"' in row
    assert "Task: paused by user-" in mail
    assert "Pause in all queues" in text(operator.get(PAGE))
    assert operator.post(f"{PAGE}pause/", {"queue": "nobody"}).status_code == 404
    assert "was already paused" in text(operator.post(f"{PAGE}pause/", {"queue": "mail"}, follow=True))
    assert "is not paused" in text(operator.post(f"{PAGE}resume/", {"queue": QUEUE}, follow=True))


def test_too_many_are_paused_in_one_of_the_queues(broker, rtq, operator):
    broker.register_queues([QUEUE, "mail"])
    for number in range(100):
        rtq.tasks[f"task{number}"].pause(QUEUE)

    page = text(operator.post(f"{PAGE}pause/", follow=True))

    assert "In queue default, 100 tasks are paused already" in page
    assert f"Task {MAIL} is paused in mail." in page
    assert logged() == ["Paused in mail."]
    again = text(operator.post(f"{PAGE}pause/", follow=True))
    assert "In queue default, 100 tasks are paused already" in again
    assert "was already paused" not in again
    assert len(logged()) == 1


def test_a_held_job_is_not_said_to_be_due(broker, rtq, operator):
    job = queued_job(broker, body=body(task=MAIL))
    rtq.tasks[MAIL].pause(by="eve")
    claim(broker)

    listed = text(operator.get(f"/admin/django_rtq/queue/{QUEUE}/", {"state": "scheduled"}))
    page = text(operator.get(f"/admin/django_rtq/job/{job.id}/"))

    assert "task paused" in listed
    assert "Its task was paused by eve, " in page
    assert "so the jobs of this task do not start." in page
    assert " due " not in page
    assert "Run now" not in page
