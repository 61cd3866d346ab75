"""The pages of clients: pauses, limits and purging."""

import re
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry

from django_rtq.console.admin.query_params import REFRESH_HEADER
from django_rtq.core.jobs.job import JobState
from tests.console.admin.conftest import ALL, logged, text
from tests.console.admin.test_dead_letters import BULK, hidden_fields, said
from tests.support.commands import dead_letter
from tests.support.jobs import QUEUE, queued_job, scheduled_job
from tests.support.workflows import begun_flow

LIST = "/admin/django_rtq/client/"
PAGE = f"{LIST}client/"
WITHOUT_A_NAME = f"{PAGE}?client="


def test_the_client_without_a_name_has_a_page(broker, operator):
    queued_job(broker)
    assert "Client (none)" in text(operator.get(WITHOUT_A_NAME))
    queued_job(broker, client="x")
    assert f'href="{WITHOUT_A_NAME}"' in text(operator.get(LIST))


def test_spaces_in_the_name_of_a_client_are_kept(broker, person):
    user = person(*ALL)
    job, _other = (queued_job(broker, client=client) for client in (" acme", "acme"))

    answer = user.get(PAGE, {"client": " acme"})
    (link,) = re.findall(r'<th scope="row"[^>]*><a href="([^"]*)"', text(answer))

    assert re.findall(r'name="id" value="([^"]*)"', text(user.get(unescape(link)))) == [job.id]


def test_a_client_that_nobody_knows_is_no_error(broker, operator):
    queued_job(broker)
    assert "Nothing is known of this client." in text(operator.get(f"{PAGE}?client=nobody"))


@pytest.mark.parametrize("client", ["x" * 201, "a\nb"])
def test_what_cannot_be_a_client_is_not_found(broker, operator, client):
    assert operator.get(PAGE, {"client": client}).status_code == 404


def test_each_queue_has_its_buttons(broker, operator, rtq):
    for queue in (QUEUE, "low"):
        queued_job(broker, client="bakery", queue=queue)
    rtq.clients["bakery"].pause("low")

    html = text(operator.get(PAGE, {"client": "bakery"}))

    address = rf"{LIST}(\w+)/\?client=bakery(?:&amp;queue=(\w+))?"
    assert sorted(re.findall(rf'<button form="rtq-act" formaction="{address}">(.*?)<', html)) == [
        ("pause", "", "Pause in all queues"), ("pause", QUEUE, "Pause"), ("resume", "low", "Resume")
    ]  # fmt: skip
    assert f'href="{LIST}limits/?client=bakery&amp;queue=low&amp;next=' in html


def test_a_refresh_of_a_client_in_many_queues_is_small(broker, operator):
    for number in range(50):
        queued_job(broker, client="client-7", queue=f"queue-{number}")

    assert len(operator.get(PAGE, {"client": "client-7"}, headers={REFRESH_HEADER: "1"}).content) < 70_000


def test_a_client_is_paused_and_resumed(broker, readers, operator):
    queued_job(broker, client="bakery")
    queued_job(broker, client="bakery", queue="low")

    answer = operator.post(f"{LIST}pause/", {"client": "bakery", "queue": QUEUE})
    assert answer["Location"] == f"{PAGE}?client=bakery"
    (found,) = readers.clients.get("bakery", [QUEUE])
    assert found.pause.by.startswith("user-")
    operator.post(f"{LIST}pause/", {"client": "bakery"})
    assert all(one.pause for one in readers.clients.get("bakery"))

    operator.post(f"{LIST}resume/", {"client": "bakery"})
    assert not any(one.pause for one in readers.clients.get("bakery"))
    assert sorted(logged()) == ["Paused in default.", "Paused in low.", "Resumed in default, low."]
    assert {entry.object_id for entry in LogEntry.objects.all()} == {"bakery"}


def test_limits_of_a_client_are_changed(broker, readers, operator):
    broker.limits.change(QUEUE, {"settings:client:bakery": "max_running=7"})
    page = f"{LIST}limits/?queue={QUEUE}&client=bakery"
    assert "The settings say 7." in text(operator.get(page))

    answer = operator.post(page, {"queue": QUEUE, "client": "bakery", "max_running": "3"})

    assert answer["Location"] == f"{PAGE}?client=bakery"
    (found,) = readers.clients.get("bakery", [QUEUE])
    assert (found.limits["max_running"].value, found.limits["max_running"].is_from_settings) == (3, False)
    assert 'value="3"' in text(operator.get(page))
    operator.post(page, {"queue": QUEUE, "client": "bakery", "max_running": "none"})
    assert readers.clients.get("bakery", [QUEUE])[0].limits["max_running"].value is None
    operator.post(page, {"queue": QUEUE, "client": "bakery", "max_running": ""})
    assert readers.clients.get("bakery", [QUEUE])[0].limits["max_running"].value == 7
    assert [entry.object_id for entry in LogEntry.objects.all()] == ["bakery"] * 3


@pytest.mark.parametrize("action", ["pause", "limits"])
def test_a_list_that_is_kept_tells_what_was_changed(broker, operator, monkeypatch, action):
    monkeypatch.setattr("django_rtq.console.reading.clients.FEW", 0)
    queued_job(broker, client="bakery")
    states = ["paused", "limited"]
    before = [operator.get(LIST, {"state": state}).context["tables"] for state in states]

    operator.post(f"{LIST}{action}/", {"client": "bakery", "queue": QUEUE, "max_running": "3"})

    after = [bool(operator.get(LIST, {"state": state}).context["tables"]) for state in states]
    assert (before, after) == ([[], []], [action == "pause", action == "limits"])


@pytest.mark.parametrize(("path", "part"), [("limit-clients/", "default"), ("limits/", "limits")])
def test_limits_of_a_queue_are_changed(broker, readers, operator, path, part):
    page = f"/admin/django_rtq/queue/{QUEUE}/"
    broker.register_queues([QUEUE])
    assert f'href="{page}{path}?next=' in text(operator.get(page))

    answer = operator.post(f"{page}{path}", {"max_running": "3"})

    assert answer["Location"] == page
    assert getattr(readers.clients.limits(QUEUE), part)["max_running"].value == 3
    operator.post(f"{page}{path}", {"max_running": "3"})
    assert "Nothing was changed" in said(operator)
    assert LogEntry.objects.get().object_id == QUEUE


@pytest.mark.parametrize("wrong", ["-1", "many", "1.5"])
def test_a_wrong_limit_changes_nothing(broker, readers, operator, wrong):
    answer = operator.post(f"{LIST}limits/", {"queue": QUEUE, "client": "bakery", "max_running": wrong})

    assert f"{wrong!r} is not a whole number from 0 on, 'none' or 'settings'." in unescape(text(answer))
    assert readers.clients.limits(QUEUE).clients == {}
    assert operator.post(f"{LIST}limits/", {"queue": "no queue", "max_running": "1"}).status_code == 404


def confirm_form(client, page):
    """The fields of the form that asks, and the HTML of the page."""
    html = text(client.get(page))
    return hidden_fields(html), html


def test_its_jobs_are_cancelled_in_all_queues_after_a_question(broker, readers, operator):
    kept = [queued_job(broker, client="florist"), queued_job(broker, client="florist", queue="low")]
    jobs = [queued_job(broker, client="bakery"), scheduled_job(broker, client="bakery")]
    jobs.append(queued_job(broker, client="bakery", queue="low"))
    fields, html = confirm_form(operator, f"{BULK}cancel/?q=client:bakery")
    assert "Cancel 3 waiting jobs?" in html
    assert "Cancel its jobs …" in text(operator.get(f"{PAGE}?client=bakery"))

    answer = operator.post(f"{BULK}cancel/", fields)

    assert answer["Location"] == f"{PAGE}?client=bakery"
    assert "3 jobs were cancelled." in said(operator)
    assert {readers.find(job.id).state for job in jobs} == {JobState.CANCELLED}
    assert {readers.find(job.id).state for job in kept} == {JobState.QUEUED}
    assert logged()[0].startswith("3 jobs were cancelled. (Queue: default, low, Filter: client:bakery, ")
    assert operator.get(f"{BULK}cancel/?q=client:grocer")["Location"] == f"{PAGE}?client=grocer"
    assert "no job matches any more" in said(operator)


def test_all_that_is_kept_of_it_is_erased_after_a_question(broker, readers, operator):
    for queue in (QUEUE, "low"):
        dead_letter(broker, client="bakery", queue=queue), queued_job(broker, client="bakery", queue=queue)
    kept = queued_job(broker, client="florist")
    begun_flow(broker, {"size": 1, "client": "florist"}, client="bakery")
    fields, html = confirm_form(operator, f"{BULK}erase/?q=client:bakery")
    assert "This deletes all that is kept: 4 jobs." in html
    assert re.search(r"<dt>Workflows</dt>\s*<dd>1</dd>", html)
    assert "made" not in html.lower()  # also what comes after the question is erased
    assert "Erase …" in text(operator.get(f"{PAGE}?client=bakery"))
    queued_job(broker, client="bakery")

    operator.post(f"{BULK}erase/", fields)

    assert logged()[0].startswith("5 jobs were erased. 1 workflow was deleted. (Queue: default, low, Filter: client:")
    assert readers.clients.get("bakery", [QUEUE])[0].queued == 0
    assert readers.find(kept.id).state is JobState.QUEUED
    operator.get(f"{BULK}erase/?q=client:bakery")
    assert "nothing is kept of the client" in said(operator)
    for query in ("client:", "client:bakery state:dead", "queue:default"):
        answer = operator.get(f"{BULK}erase/", {"q": query})
        assert "erase is for all of a client that has a name." in text(answer)
