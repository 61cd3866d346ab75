"""Arguments that are kept with results: shown, found, and used again."""

import json
import re

from django_rtq.console.redaction import HIDDEN
from django_rtq.core.jobs.outcome import write_call, write_succeeded
from tests.app import secret_tasks  # noqa: F401 - so that it is registered
from tests.console.admin.conftest import MAIL, text
from tests.support.jobs import QUEUE, claimed_job, finished_job, settle

PAGE = "/admin/django_rtq/job/"


def kept_job(broker, *args, task=MAIL, **kwargs):
    """A finished job whose arguments were kept."""
    job = claimed_job(broker, "done", client="bakery")
    call = write_call(json.dumps({"task": task, "args": args, "kwargs": kwargs}))
    settle(broker, "ack", job, outcome=write_succeeded(task, b"bakery", 1, 0.1, "null", call))
    return job


def test_the_arguments_of_a_finished_job_are_shown_if_they_were_kept(broker, operator):
    job = kept_job(broker, "bakery", order_id=42, password="swordfish")
    html = text(operator.get(f"{PAGE}{job.id}/"))

    assert "<h2>Arguments</h2>" in html
    assert re.search(r"<code>order_id</code></dt><dd><pre[^>]*>42</pre>", html)
    assert "swordfish" not in html
    assert "<h2>Arguments</h2>" not in text(operator.get(f"{PAGE}{finished_job(broker).id}/"))


def test_a_finished_job_is_enqueued_again_and_hidden_arguments_stay_the_same(broker, operator, readers):
    job = kept_job(broker, task="tests.app.secret_tasks.log_in", user="eve", password="swordfish")
    link = re.search(r'href="([^"]*/enqueue/[^"]*)"', text(operator.get(f"{PAGE}{job.id}/")))[1].replace("&amp;", "&")
    form = text(operator.get(link))
    assert "&quot;user&quot;: &quot;eve&quot;" in form
    assert 'value="bakery"' in form
    assert HIDDEN in form
    assert "swordfish" not in form

    given = {"args": "[]", "kwargs": json.dumps({"user": "adam", "password": HIDDEN})}
    operator.post(link, {**given, "queue_name": QUEUE, "client": "bakery"})

    (again,) = readers.job_list.search([(QUEUE, "queued")]).page().jobs
    assert (again.task, again.args, again.client) == ("tests.app.secret_tasks.log_in", [], "bakery")
    assert again.kwargs == {"user": "adam", "password": "swordfish"}


def test_a_job_of_another_task_or_without_arguments_is_not_enqueued_again(broker, operator):
    url = f"/admin/django_rtq/registeredtask/{MAIL.replace('_', '_5F')}/enqueue/"
    other = kept_job(broker, task="tests.app.tasks.note")

    assert operator.get(f"{url}?job={other.id}").status_code == 404
    assert operator.get(f"{url}?job={finished_job(broker).id}").status_code == 404
    assert operator.get(f"{url}?job=unknown").status_code == 404
