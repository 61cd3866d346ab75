"""The page of one task."""

import pytest
from django.contrib.admin.models import LogEntry

from django_rtq.admin import permissions
from django_rtq.broker.histogram import bucket_of
from tests.admin.conftest import MAIL, body, text
from tests.broker.test_filter_jobs import bury
from tests.broker.test_task_metrics import tell
from tests.support.jobs import QUEUE, claim, queued_job, scheduled_job

LIST = "/admin/django_rtq/registeredtask/"
PAGE = f"{LIST}{MAIL.replace('_', '_5F')}/"
OTHER = f"{LIST}ship/"


def test_it_shows_runs_charts_and_histograms(broker, operator):
    tell(broker, "done ship", 6, "failed ship", 3, "crashed ship", 1)
    tell(broker, f"r{bucket_of(2.0)} ship", 9, f"w{bucket_of(5)} ship", 6)

    answer = operator.get(OTHER)

    assert [cell["text"] for cell in answer.context["totals"]][:4] == ["6", "3", "1", "33 %"]
    assert next(chart["rows"][-1][1] for chart in answer.context["charts"]) == ["6", "3", "1"]
    assert [len(chart["rows"]) for chart in answer.context["histograms"]] == [1, 1]
    assert text(answer).count('<svg class="rtq-chart') == 5
    assert "not registered in this process" in text(answer)


def test_its_jobs_are_counted_with_links_to_the_filtered_lists(broker, operator):
    queued_job(broker, body=body(1))
    queued_job(broker, body=body(1), queue="low")
    scheduled_job(broker, body=body(1), queue="low")
    queued_job(broker, body=body(1, task="other"), queue="idle")

    answer = operator.get(PAGE)

    rows = {row["name"]: row for row in answer.context["queue_rows"]}
    assert [cell["text"] for cell in rows["low"]["cells"]] == ["1", "1", "0", "0", "0"]
    assert "idle" not in rows
    assert len(operator.get(rows["low"]["cells"][1]["url"]).context["job_rows"]) == 1
    assert "Enqueue …" in text(answer)
    assert "Send" in text(answer)  # the docstring


def test_its_dead_letters_are_grouped_by_error(broker, operator):
    bury(broker, "ship", kind="a.OutOfOrder", message="no answer")
    bury(broker, "ship", kind="a.OutOfOrder", message="no answer")
    bury(broker, "other")

    html = text(operator.get(OTHER))

    assert "OutOfOrder" in html
    assert "no answer" in html
    assert "ValueError" not in html
    assert f"/admin/django_rtq/deadletter/requeue-all/?queue={QUEUE}&amp;task=ship&amp;error=a.OutOfOrder" in html


@pytest.mark.parametrize("name", ["nosuch", "a.b.c", "_2F", "x" * 300])
def test_a_task_that_nobody_knows_is_not_found(broker, operator, name):
    assert operator.get(f"{LIST}{name}/").status_code == 404


def test_a_task_that_has_not_run_yet_has_a_page(broker, operator):
    answer = operator.get(PAGE)
    assert answer.status_code == 200
    assert "No runs." in text(answer)


def test_a_list_that_was_not_searched_to_its_end_says_so(broker, operator, monkeypatch):
    for name in ("MAX_SEARCHED", "LEAST_SEARCHED"):
        monkeypatch.setattr(f"django_rtq.inspector.task_details.{name}", 2)
    for _ in range(3):
        queued_job(broker, body=body(1))
    assert "≥ 2" in text(operator.get(PAGE))
    assert "Open the list to search on." in text(operator.get(PAGE))


def test_lists_jobs_groups_and_incidents_link_to_it(broker, operator, jobs):
    for page in (LIST, "/admin/django_rtq/deadletter/", f"/admin/django_rtq/job/{jobs.dead.id}/"):
        assert f'href="{PAGE}"' in text(operator.get(page))
    tell(broker, f"done {MAIL}", 1, f"failed {MAIL}", 99)
    assert f'href="{PAGE}"' in text(operator.get("/admin/django_rtq/queue/"))


def test_who_may_only_look_sees_no_buttons(broker, person):
    bury(broker, MAIL)
    html = text(person(permissions.VIEW).get(PAGE))
    assert not [
        word
        for word in ("Pause in all queues", "Pause here", "Enqueue …", "Requeue …", "Discard …", "Cancel")
        if word in html
    ]


def test_a_task_is_paused_and_resumed_on_its_page(broker, inspector, operator):
    job = queued_job(broker, body=body(task=MAIL))
    broker.register_queues(["mail"])

    paused = operator.post(f"{PAGE}pause/", follow=True)
    assert claim(broker) == []
    page = text(operator.get(PAGE))
    resumed = operator.post(f"{PAGE}resume/", follow=True)

    assert f"Task {MAIL} is paused in default, mail. Its running jobs continue" in text(paused)
    assert "paused by user-" in page
    assert "1 job held in default, mail" in page
    assert "Resume in all queues" in page
    assert f"Task {MAIL} was resumed in default, mail." in text(resumed)
    assert claim(broker) == [job.id]
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == [
        "Paused in default, mail.",
        "Resumed in default, mail.",
    ]


def test_in_one_queue(broker, inspector, operator):
    broker.register_queues([QUEUE, "mail"])
    queued_job(broker, body=body(task=MAIL))

    operator.post(f"{PAGE}pause/", {"queue": "mail"})

    assert [queue.name for queue in inspector.queues.details() if queue.paused_tasks] == ["mail"]
    page = text(operator.get(PAGE))
    assert "Pause in all queues" in page
    assert (page.count("Pause here"), page.count("Resume here")) == (1, 1)
    assert operator.post(f"{PAGE}pause/", {"queue": "nobody"}).status_code == 404
    assert "was already paused" in text(operator.post(f"{PAGE}pause/", {"queue": "mail"}, follow=True))
    assert "is not paused" in text(operator.post(f"{PAGE}resume/", {"queue": QUEUE}, follow=True))


def test_in_the_list(broker, inspector, operator):
    broker.register_queues([QUEUE])

    answer = operator.post(f"{PAGE}pause/", {"next": LIST}, follow=True)

    assert answer.redirect_chain == [(LIST, 302)]
    (row,) = [row for row in answer.context["rows"] if row["paused"]]
    assert (row["name"], row["paused"].queues) == (MAIL, [QUEUE])
    assert f"{PAGE}resume/" in text(answer)


def test_too_many_are_paused(broker, inspector, operator):
    broker.register_queues([QUEUE])
    for number in range(100):
        inspector.task_pauses.pause_task(f"task{number}", QUEUE)

    assert "100 tasks are paused already" in text(operator.post(f"{PAGE}pause/", follow=True))


def test_the_overview_says_which_tasks_are_paused(broker, inspector, operator):
    queued_job(broker, body=body(task=MAIL))
    inspector.task_pauses.pause_task(MAIL, by="eve")
    claim(broker)

    page = text(operator.get("/admin/django_rtq/queue/"))

    assert "Task send_order_mail is paused in default, and holds 1 job. Paused by eve." in page
    assert f'href="{PAGE}"' in page


def test_a_held_job_is_not_said_to_be_due(broker, inspector, operator):
    job = queued_job(broker, body=body(task=MAIL))
    inspector.task_pauses.pause_task(MAIL, by="eve")
    claim(broker)

    listed = text(operator.get(f"/admin/django_rtq/queue/{QUEUE}/", {"state": "scheduled"}))
    page = text(operator.get(f"/admin/django_rtq/job/{job.id}/"))

    assert "task paused" in listed
    assert "Its task was paused by eve, " in page
    assert "so the jobs of this task do not start." in page
    assert " due " not in page
    assert "Run now" not in page
