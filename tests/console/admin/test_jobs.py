"""The page of a job, and what a person does with it."""

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone
from django.utils.html import escape

from django_rtq.console import permissions
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.console.log_lines import write_line
from django_rtq.console.redaction import HIDDEN
from django_rtq.core.jobs.outcome import write_call, write_succeeded
from django_rtq.models import CommittedJob
from tests.app import (
    once_tasks,
    secret_tasks,  # noqa: F401 - so that it is registered
)
from tests.console.admin.conftest import MAIL, body, logged, text
from tests.console.admin.test_dead_letters import hidden_fields, said
from tests.support.commands import run
from tests.support.jobs import (
    QUEUE,
    asked_job,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
)

PAGE = "/admin/django_rtq/job/"
BULK = f"{PAGE}bulk/"


def act(client, job, verb, state, **more):
    """Press the button of a job in that state, and answer the question."""
    given = {"q": f"queue:{QUEUE} state:{state}", "id": job.id, "until_ms": 10**15, **more}
    return client.post(f"{BULK}{verb}/", given)


def edit(client, job, args, kwargs=None, **more):
    """Send the form with these arguments."""
    given = {"queue": QUEUE, "args": json.dumps(args), "kwargs": json.dumps(kwargs or {}), **more}
    return client.post(f"{PAGE}{job.id}/edit/", given)


@pytest.mark.parametrize("state", ["dead", "retrying", "finished", "scheduled", "queued"])
def test_every_state_has_a_page_with_its_words(state, jobs, operator):
    job = getattr(jobs, state)
    html = text(operator.get(f"{PAGE}{job.id}/"))  # without its queue, as the log of the admin links it
    assert f"rtq-state-{'succeeded' if state == 'finished' else state}" in html
    assert job.id in html


def test_its_headers_are_shown_without_secrets(broker, operator):
    record = json.dumps({**json.loads(body("bakery", 7)), "headers": {"tenant": "acme", "api_token": "5ecr3t"}})
    job = dead_job(broker, body=record)
    html = text(operator.get(f"{PAGE}{job.id}/"))
    assert "Headers" in html
    assert "&quot;tenant&quot;: &quot;acme&quot;" in html
    assert HIDDEN in html
    assert "5ecr3t" not in html


def test_the_lines_that_it_logged_are_shown_by_attempt(broker, operator):
    job = dead_job(broker, body=body("bakery", 7))
    lines = [
        write_line(1, 1_800_000_000_000, "INFO", "shop", "<b>order</b> 7"),
        write_line(2, 1_800_000_060_000, "ERROR", "shop.bank", "no money", "Traceback:\n  last line"),
    ]
    broker.redis.execute_one(("RPUSH", broker.keys.of(QUEUE).log_of(job.id), *(f"t-1 {line}" for line in lines)))
    html = text(operator.get(f"{PAGE}{job.id}/"))

    log = html.split('class="rtq-log"')[1].split("</ol>")[0]
    assert "&lt;b&gt;order&lt;/b&gt; 7" in log
    assert re.findall(r"Attempt (\d)", log) == ["1", "2"]
    assert '<li class="rtq-log-error">' in log
    assert "no money\nTraceback:\n  last line" in log
    assert 'datetime="2027-01-15T08:00:00+00:00"' in log
    assert 'class="rtq-log"' not in text(operator.get(f"{PAGE}{dead_job(broker).id}/"))


def test_a_job_that_runs_is_asked_to_stop_and_the_person_told_so(jobs, operator, readers):
    act(operator, jobs.running, "cancel", "running")
    assert "1 job was asked to stop." in said(operator)
    assert logged() == [f"1 job was asked to stop. {jobs.running.id}"]
    found = readers.find(jobs.running.id)
    assert (found.state, found.is_stopping) == ("running", True)


def test_what_may_run_no_more_is_terminated_one_by_one(jobs, operator, readers):
    asked = text(operator.get(f"{BULK}terminate/", {"q": f"queue:{QUEUE} state:running", "id": jobs.running.id}))
    assert "This kills the process that runs the job." in asked
    operator.post(f"{BULK}terminate/", {"q": f"queue:{QUEUE} state:running", "until_ms": 10**15})
    assert "no job was selected" in said(operator)
    act(operator, jobs.running, "terminate", "running")
    assert "If it does not, its process is killed." in said(operator)
    assert readers.find(jobs.running.id).is_stopping


@pytest.mark.parametrize("where", ["", "{id}/"])
def test_a_job_that_was_asked_is_shown_as_such_and_not_asked_again(where, broker, operator):
    job = asked_job(broker, "asked")
    html = text(operator.get(PAGE + where.format(id=job.id)))
    assert "asked to stop" in html
    assert "Cancel job …" not in html
    assert "Terminate …" in html


def test_a_job_that_is_unknown_says_so(operator, broker):
    answer = operator.get(f"{PAGE}nothing/")
    assert answer.status_code == 404
    assert "Job not found" in text(answer)


def test_an_id_with_odd_signs_can_be_opened_and_acted_on(broker, operator, readers):
    job = dead_job(broker, "a/b?c#d %_2F")
    page = text(operator.get(f"/admin/django_rtq/queue/{QUEUE}/?state=dead"))
    (link,) = re.findall(r'<th scope="row"[^>]*><a href="([^"]*)"', page)
    url = link.replace("&amp;", "&")
    assert operator.get(url).status_code == 200
    (button,) = re.findall(r'formaction="([^"]*requeue/[^"]*id=[^"]*)"', text(operator.get(url)))
    operator.post(button.replace("&amp;", "&"))
    assert readers.find(job.id).state == "queued"


@pytest.mark.parametrize(
    ("action", "state", "becomes"),
    [
        ("requeue", "dead", "queued"),
        ("run-now", "scheduled", "queued"),
        ("run-now", "retrying", "queued"),
        ("cancel", "queued", "cancelled"),
        ("cancel", "scheduled", "cancelled"),
    ],
)
def test_actions_do_what_they_say_and_are_written_down(action, state, becomes, jobs, operator, readers):
    job = getattr(jobs, state)
    act(operator, job, action, state)
    assert readers.find(job.id).state == becomes
    entry = LogEntry.objects.get()
    assert entry.object_id == job.id
    assert operator.get(entry.get_admin_url()).status_code == 200


def test_a_question_leads_back_to_pages_of_this_site_only(jobs, operator):
    html = text(operator.get(f"{BULK}discard/", {"id": jobs.dead.id, "next": "//elsewhere.example/"}))
    assert "elsewhere" not in html


@pytest.mark.parametrize("verb", ["discard", "requeue"])
def test_the_question_about_one_job_names_its_task(jobs, operator, verb):
    given = {"q": f"queue:{QUEUE} state:dead", "id": jobs.dead.id}
    assert f"<dt>Task</dt><dd>{MAIL}</dd>" in text(operator.get(f"{BULK}{verb}/", given))
    assert operator.get(f"{BULK}{verb}/", {**given, "id": "gone"}).status_code == 404


def test_who_does_not_discard_a_job_comes_back_to_its_page(jobs, operator):
    page = f"{PAGE}{jobs.dead.id}/?queue={QUEUE}"
    (question,) = re.findall(r'href="([^"]*/discard/[^"]*)"', text(operator.get(page)))

    html = text(operator.get(question.replace("&amp;", "&")))

    assert html.count(f'href="{page}"') == 2  # above, and beside the button
    answer = operator.post(question.replace("&amp;", "&"), hidden_fields(html))
    assert answer["Location"] == f"/admin/django_rtq/queue/{QUEUE}/?state=dead"


@pytest.mark.parametrize(
    ("action", "before", "state", "words"),
    [
        ("requeue", "dead", "queued", "is now queued. Someone else may have acted first."),
        ("discard", "dead", "retrying", "is now retrying."),
        ("run-now", "scheduled", "queued", "is now queued."),
        ("cancel", "queued", "dead", "is now dead."),
        ("cancel", "queued", "running", "is now running."),
        ("terminate", "running", "finished", "is now succeeded."),
    ],
)
def test_who_comes_too_late_is_told_what_it_is_now(action, before, state, words, jobs, operator):
    act(operator, getattr(jobs, state), action, before)
    assert words in said(operator)
    assert not LogEntry.objects.exists()


# -- with other arguments


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ('["only one"]', "{}", "missing a required argument"),
        ('["a", 1, 2]', "{}", "too many positional arguments"),
        ('["a", 1]', '{"colour": 1}', "unexpected keyword argument"),
        ('{"a": 1}', "{}", "Enter a JSON list"),
        ('["a", 1]', '["b"]', "Enter a JSON object"),
        *((wrong, "{}", "") for wrong in ("[1,", "[NaN]", "[" * 2000 + "]" * 2000, '{"$rtq": ["evil"]}')),
        ('"' + "x" * 2_000_000 + '"', "{}", ""),
    ],
)
def test_arguments_that_do_not_fit_or_are_no_json_are_refused(args, kwargs, words, jobs, operator, readers):
    answer = operator.post(f"{PAGE}{jobs.dead.id}/edit/", {"queue": QUEUE, "args": args, "kwargs": kwargs})
    assert answer.status_code == 200
    assert words in text(answer)
    assert readers.find(jobs.dead.id).state == "dead"
    assert not LogEntry.objects.exists()


def test_a_job_that_has_committed_is_not_requeued_with_other_arguments(broker, operator, readers):
    record = json.dumps({"task": once_tasks.wait.name, "args": ["a", "gate"], "kwargs": {}})
    job = dead_job(broker, body=record)
    CommittedJob.objects.create(job_id=job.id, queue=QUEUE, committed_at=timezone.now())
    answer = edit(operator, job, ["b", "gate"])

    assert "An earlier run of this job has committed" in text(answer)
    assert readers.find(job.id).state == "dead"
    CommittedJob.objects.all().delete()
    edit(operator, job, ["b", "gate"])
    assert readers.find(job.id).args == ["b", "gate"]


def test_who_edits_what_somebody_requeued_meanwhile_is_told(jobs, operator, readers):
    readers.actions.done("requeue", QUEUE, [jobs.dead.id])
    edit(operator, jobs.dead, ["florist", 9])
    assert "is now queued" in said(operator)
    assert readers.find(jobs.dead.id).args == ["bakery", 1]


def test_hidden_values_that_are_left_as_they_are_stay_what_they_were(broker, operator, readers):
    secret = {"user": "ann", "api_token": "s3cret", "deep": [{"password": "s3cret-2"}]}
    job = dead_job(broker, "dead", body=body(secret, task="elsewhere.task"))
    html = text(operator.get(f"{PAGE}{job.id}/edit/?queue={QUEUE}"))
    assert "s3cret" not in html

    hidden = {"user": "bob", "api_token": HIDDEN, "deep": [{"password": HIDDEN}]}
    edit(operator, job, [hidden])

    assert readers.find(job.id).args == [{**secret, "user": "bob"}]


def test_a_job_is_requeued_with_other_arguments_and_dates_survive(broker, operator, readers):
    date = {"$rtq": ["date", "2026-02-28"]}
    job = dead_job(broker, "dead", body=body(date, 1, task="elsewhere.task"))
    html = text(operator.get(f"{PAGE}{job.id}/edit/?queue={QUEUE}"))
    assert escape('"$rtq"') in html
    edit(operator, job, [date, 2])
    found = readers.find(job.id)
    assert (found.state, found.args[0].isoformat(), found.args[1]) == ("queued", "2026-02-28", 2)
    assert LogEntry.objects.count() == 1


# -- by hand


def test_a_job_is_enqueued_by_hand(operator, readers, broker):
    answer = operator.post(
        f"/admin/django_rtq/registeredtask/{MAIL.replace('_', '_5F')}/enqueue/",
        {"args": '["bakery"]', "kwargs": '{"order_id": 5}', "queue_name": "bulk", "delay_seconds": "60"},
        follow=True,
    )
    assert answer.status_code == 200
    (job,) = readers.search([("bulk", "scheduled")]).page().jobs
    assert (job.task, job.args, job.kwargs, job.client) == (MAIL, ["bakery"], {"order_id": 5}, "bakery")
    assert job.id in logged()[0]


@pytest.mark.parametrize(
    "given",
    [
        {"args": "[1]"},
        {"args": '["a", 1]', "queue_name": "no such name"},
        {"args": '["a", 1]', "delay_seconds": "-1"},
        {"args": '["a", 1]', "delay_seconds": "1e99"},
        {"args": '["a", 1]', "delay_seconds": "nan"},
        {"args": '["a", 1]', "client": "x" * 201},
        {"args": '[{"not": "text"}, 1]'},
    ],
)
def test_a_call_that_makes_no_sense_is_not_enqueued(given, operator, readers, broker):
    answer = operator.post(f"/admin/django_rtq/registeredtask/{MAIL.replace('_', '_5F')}/enqueue/", given)
    assert answer.status_code == 200
    assert 'role="alert"' in text(answer)
    assert readers.queues.names() == []


def test_a_task_that_nobody_registered_cannot_be_enqueued(operator, broker):
    assert operator.post("/admin/django_rtq/registeredtask/os.system/enqueue/", {"args": '["ls"]'}).status_code == 404


def test_nobody_gets_around_a_permission_by_a_job_of_ours(broker, person, readers):
    # Who may enqueue, but not discard, could let a worker discard.
    client = person(permissions.VIEW, permissions.ENQUEUE, permissions.EDIT, permissions.REQUEUE)
    chore = run_bulk_action.name.replace("_", "_5F")
    assert client.get(f"/admin/django_rtq/registeredtask/{chore}/enqueue/").status_code == 404
    assert f"{chore}/enqueue/" not in text(client.get(f"/admin/django_rtq/registeredtask/{chore}/"))
    job = dead_job(broker, "dead", body=body(QUEUE, "requeue", {}, 1, task=run_bulk_action.name))
    edit(client, job, [QUEUE, "discard", {}, 10**15])
    assert "Nothing was done" in said(client)
    assert readers.find(job.id).args == [QUEUE, "requeue", {}, 1]


def reason(client, job):
    """The waiting reason on the page of a job."""
    html = text(client.get(f"/admin/django_rtq/job/{job.id}/?queue={QUEUE}"))
    found = re.search(r'<p class="rtq-why">(.*?)</p>', html)
    return found and found[1]


def test_the_page_of_a_job_says_it_in_two_round_trips(broker, viewer, rtq, round_trips):
    first, behind, later = (seed(broker, client="x") for seed in (queued_job, queued_job, scheduled_job))
    broker.sign_on([QUEUE], "w1")
    round_trips.clear()

    assert reason(viewer, first).startswith("It is the next job of the queue. All workers")
    assert len(round_trips) == 2
    assert reason(viewer, behind).startswith("Ahead of it: up to 1 job of its client.")
    assert reason(viewer, later).startswith("It is due in ")

    rtq.queues[QUEUE].pause(by="eve")
    assert reason(viewer, behind).startswith("The queue was paused by eve, ")


def test_a_job_that_runs_exactly_once_says_that_it_has_committed(broker, viewer):
    job = dead_job(broker, body=json.dumps({"task": once_tasks.wait.name}))
    CommittedJob.objects.create(job_id=job.id, queue=QUEUE, committed_at=timezone.now())

    assert "A run has committed." in text(viewer.get(f"{PAGE}{job.id}/"))
    assert "Exactly once:   A run has committed." in run("rtq_jobs", "show", job.id).out
    retrying = retrying_job(broker, body=json.dumps({"task": once_tasks.wait.name}))
    assert "Nothing was written" in run("rtq_jobs", "show", retrying.id, "--json").json[0]["exactly_once"]


def test_a_job_of_a_batch_says_so(broker, viewer, monkeypatch):
    job = dead_job(broker, body=json.dumps({"task": once_tasks.wait.name}))
    monkeypatch.setitem(vars(once_tasks.wait), "batch", 50)

    assert "one call of up to 50 jobs" in text(viewer.get(f"{PAGE}{job.id}/"))


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

    (again,) = readers.search([(QUEUE, "queued")]).page().jobs
    assert (again.task, again.args, again.client) == ("tests.app.secret_tasks.log_in", [], "bakery")
    assert again.kwargs == {"user": "adam", "password": "swordfish"}


def test_a_job_of_another_task_or_without_arguments_is_not_enqueued_again(broker, operator):
    url = f"/admin/django_rtq/registeredtask/{MAIL.replace('_', '_5F')}/enqueue/"
    other = kept_job(broker, task="tests.app.tasks.note")

    assert operator.get(f"{url}?job={other.id}").status_code == 404
    assert operator.get(f"{url}?job={finished_job(broker).id}").status_code == 404
    assert operator.get(f"{url}?job=unknown").status_code == 404
