"""Pausing and resuming a task."""

import pytest
from django.contrib.admin.models import LogEntry

from tests.console.admin.conftest import MAIL, body, logged, text
from tests.support.jobs import QUEUE, claim, queued_job

LIST = "/admin/django_rtq/registeredtask/"
PAGE = f"{LIST}{MAIL.replace('_', '_5F')}/"


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
    mail, other = operator.get(PAGE).context["tables"][0].rows.split("\n")
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
