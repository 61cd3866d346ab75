"""Dead letters: groups, selected ones, and bulk actions."""

import re
from html import unescape
from types import SimpleNamespace

from django_rtq.console.admin.pages import bulk as bulk_pages
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.sweep import Sweep, Sweeper
from django_rtq.exceptions import BrokerUnavailable
from tests.console.admin.conftest import logged, text
from tests.console.commands.test_rtq_jobs_dead_letters import break_after
from tests.support.commands import dead_letters
from tests.support.jobs import QUEUE, dead_job

PAGE = "/admin/django_rtq/deadletter/"
BULK = "/admin/django_rtq/job/bulk/"
DEAD = f"queue:{QUEUE} state:dead"
LATER = 10**15


def hidden_fields(html):
    """The data that the form of a confirmation page posts."""
    fields = {}
    for name, value in re.findall(r'<input type="hidden" name="(?!csrf)(\w+)" value="([^"]*)"', html):
        fields.setdefault(name, []).append(unescape(value))
    return fields


def said(client):
    """The messages on the next page."""
    html = text(client.get("/admin/django_rtq/registeredtask/"))
    return html[html.index('<ul class="messagelist">') :] if "messagelist" in html else ""


def test_a_group_without_a_name_cannot_be_swept(broker, operator):
    dead_job(broker, "odd", body="nonsense")
    assert BULK not in text(operator.get(PAGE))


def test_who_comes_second_is_told_so(broker, operator, readers):
    a, b = dead_letters(broker, 2)
    readers.actions.done("requeue", QUEUE, [a])
    operator.post(f"{BULK}requeue/", {"list": DEAD, "id": [a, b]})
    words = said(operator)
    assert "1 dead letter was requeued." in words
    assert "Nothing was done with 1 of them" in words


def test_one_form_names_a_thousand_at_most(broker, operator, readers, settings):
    ids = [job_id for _ in range(3) for job_id in dead_letters(broker, 400)]
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000
    operator.post(f"{BULK}discard/", {"list": DEAD, "id": ids, "until_ms": LATER})
    assert readers.queues.get(QUEUE).dead == 200


def test_a_sweep_that_comes_too_late_says_so(broker, operator):
    operator.post(f"{BULK}requeue/", {"q": DEAD, "until_ms": LATER})
    assert "no job matches any more" in said(operator)
    assert not logged()


def test_the_job_that_does_the_rest_tells_its_progress(broker, monkeypatch):
    dead_letters(broker, 5)
    told = []
    job = SimpleNamespace(job_id="x", backend="", progress=lambda *numbers: told.append(numbers))
    monkeypatch.setattr("django_rtq.console.internal_tasks.current_job", lambda: job)
    monkeypatch.setattr("django_rtq.console.internal_tasks.place_of_job", lambda *_: "")
    monkeypatch.setitem(Sweeper.steps.__kwdefaults__, "limit", 2)
    sweep = Sweep(verb="discard", selection=Selection(queues=[QUEUE], states=["dead"], until_ms=LATER))

    assert run_bulk_action(sweep.stored()) == 5
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_what_was_done_before_redis_went_away_is_written_down(broker, operator, monkeypatch):
    dead_letters(broker, 5)
    monkeypatch.setattr(bulk_pages, "STEP", 2)
    break_after(monkeypatch, 1, BrokerUnavailable("gone"))
    answer = operator.post(f"{BULK}discard/", {"q": DEAD, "until_ms": LATER})
    assert answer.status_code == 503
    assert logged()[0].startswith("2 dead letters were discarded.")
