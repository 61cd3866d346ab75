"""The button that undoes an action."""

import re
import time
from html import unescape

import pytest

from django_rtq.admin import permissions
from django_rtq.admin.action_log import LogFilter, read_log
from django_rtq.admin.pages.bulk import pages as bulk_pages
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.inspector import sweep
from django_rtq.inspector.actions import Actions
from django_rtq.inspector.jobs import undo
from django_rtq.internal_tasks import run_bulk_action
from tests.admin.conftest import logged, text
from tests.admin.test_dead_letters import CONFIRMED, PAGE, die, hidden_fields, said
from tests.support.jobs import QUEUE, dead_job, let_lapse, queued_job
from tests.support.snapshots import snapshot

DEAD = f"/admin/django_rtq/queue/{QUEUE}/?state=dead"
UNDO = f"{PAGE}discard/undo/"
PURGE = f"/admin/django_rtq/queue/{QUEUE}/purge/"


def button(html):
    """The URL and the data of the button, or nothing."""
    form = re.search(r'<form class="rtq-undo" method="post" action="([^"]*)">(.*?)</form>', html, re.DOTALL)
    return (form[1], hidden_fields(form[2])) if form else None


def press(client, html):
    """Press the button. Returns where it leads, and what is said there."""
    url, fields = button(html)
    answer = client.post(url, fields)
    return answer["Location"], said(client)


def discard(client, ids, back=DEAD):
    """Discard these after confirmation. Returns the message."""
    html = text(client.post(f"{PAGE}discard/", {"queue": QUEUE, "id": ids, "next": back}))
    assert "You can undo this for 30 seconds." in html
    client.post(f"{PAGE}discard/", hidden_fields(html))
    return said(client)


def test_ticked_ones_come_back(redis, broker, operator, inspector):
    ids = die(broker, "a", "b", "c")
    before = snapshot(redis)

    html = discard(operator, ids[:2])
    assert "2 dead letters were discarded." in html
    assert inspector.queues.get(QUEUE).dead == 1
    where, words = press(operator, html)

    assert (where, inspector.queues.get(QUEUE).dead) == (DEAD, 3)
    assert "Undone: 2 jobs are back." in words
    after = snapshot(redis)
    assert {key: after[key] for key in ("dead", "jobs", "failures", "errors")} == {
        key: before[key] for key in ("dead", "jobs", "failures", "errors")
    }
    (entry,) = read_log(LogFilter(queue=QUEUE, action="undo"), limit=9)
    assert (entry.text, entry.count) == ("Undone: 2 jobs are back.", 2)


def test_one_comes_back_from_its_page(broker, operator, inspector):
    (job_id,) = die(broker, "a")
    html = text(operator.get(f"/admin/django_rtq/job/{job_id}/discard/", {"queue": QUEUE}))
    assert "You can undo this for 30 seconds." in html
    operator.post(f"/admin/django_rtq/job/{job_id}/discard/", hidden_fields(html))

    where, words = press(operator, said(operator))

    assert where == DEAD
    assert "Undone: 1 job is back." in words
    assert inspector.find(job_id, QUEUE).state == "dead"


def test_a_group_comes_back(broker, operator, inspector):
    die(broker, "a", "b")
    die(broker, "c", error="shop.errors.Closed")
    html = text(operator.get(f"{PAGE}discard-all/", {"queue": QUEUE, "error": "builtins.ValueError"}))
    assert "You can undo this for 30 seconds." in html
    operator.post(f"{PAGE}discard-all/", hidden_fields(html))
    assert inspector.queues.get(QUEUE).dead == 1

    where, _ = press(operator, said(operator))

    assert (where, inspector.queues.get(QUEUE).dead) == (PAGE, 3)


def test_a_button_that_is_pressed_too_late_says_so(redis, broker, operator, inspector):
    html = discard(operator, die(broker, "a"))
    redis.delete(*redis.keys("*undo*"))

    _, words = press(operator, html)

    assert "Nothing was undone: the 30 seconds for it are over, or someone else has undone it." in unescape(words)
    assert inspector.queues.get(QUEUE).dead == 0
    assert not read_log(LogFilter(action="undo"), limit=9)


def test_a_button_that_is_pressed_twice_does_it_once(broker, operator, inspector):
    html = discard(operator, die(broker, "a"))
    press(operator, html)

    _, words = press(operator, html)

    assert "someone else has undone it" in words
    assert (inspector.queues.get(QUEUE).dead, len(logged())) == (1, 2)


def test_who_may_not_discard_may_not_undo_it(broker, operator, person, inspector):
    url, fields = button(discard(operator, die(broker, "a")))

    assert person(permissions.VIEW, permissions.REQUEUE).post(url, fields).status_code == 403
    assert inspector.queues.get(QUEUE).dead == 0
    assert person(permissions.VIEW, permissions.DISCARD).post(url, fields).status_code == 302
    assert inspector.queues.get(QUEUE).dead == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "discard-" + "0" * 32},
        {"token": "purge-" + "0" * 32, "in": QUEUE},
        {"token": "x", "in": QUEUE},
        {"token": "discard-" + "0" * 32, "in": "a/b c"},
        {},
    ],
)
def test_a_wrong_form_is_refused(fields, broker, operator):
    assert operator.post(UNDO, fields).status_code == 404


def test_nothing_is_set_aside_for_a_form_without_a_token(redis, broker, operator):
    operator.post(f"{PAGE}discard/", {"queue": QUEUE, "id": die(broker, "a"), **CONFIRMED, "undo": "no token"})

    assert button(said(operator)) is None
    assert not redis.keys("*undo*")


def test_too_many_cannot_be_undone_and_the_question_says_so(redis, broker, operator, monkeypatch):
    monkeypatch.setattr(bulk_pages, "MOST_JOBS", 2)
    monkeypatch.setattr("django_rtq.admin.display.bulk_texts.MOST_JOBS", 2)
    die(broker, "a", "b", "c")
    html = text(operator.get(f"{PAGE}discard-all/", {"queue": QUEUE}))
    assert "This cannot be undone: they are more than 2 jobs." in html

    operator.post(f"{PAGE}discard-all/", hidden_fields(html))

    assert button(said(operator)) is None
    assert not redis.keys("*undo*")


def test_too_large_ones_cannot_be_undone_and_the_message_says_so(broker, operator, inspector, monkeypatch):
    monkeypatch.setattr(undo, "MOST_BYTES", 10)

    html = discard(operator, die(broker, "a"))

    assert "It cannot be undone: the jobs are too many or too large to be kept." in html
    assert button(html) is None
    assert inspector.queues.get(QUEUE).dead == 0


def test_an_incomplete_count_promises_no_undo(redis, broker, operator, monkeypatch):
    monkeypatch.setattr(sweep, "MOST_DEAD_COUNTED", 2)
    die(broker, *"abcde", error="shop.errors.Closed")
    html = text(operator.get(f"{PAGE}discard-all/", {"queue": QUEUE, "error": "shop.errors.Closed"}))
    assert "There may be more" in html
    assert "This cannot be undone: they may be more than 100,000 jobs." in html

    operator.post(f"{PAGE}discard-all/", hidden_fields(html))

    assert button(said(operator)) is None
    assert not redis.keys("*undo*")


def test_the_progress_page_says_that_the_undo_was_given_up(broker, operator, inspector, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    monkeypatch.setattr(bulk_pages, "STEP", 2)
    die(broker, *"abcde")
    html = text(operator.get(f"{PAGE}discard-all/", {"queue": QUEUE}))
    page = operator.post(f"{PAGE}discard-all/", hidden_fields(html))["Location"]
    (rest,) = inspector.job_list.each(QUEUE, "queued")
    monkeypatch.setattr(undo, "MOST_JOBS", 3)

    run_bulk_action.func(*rest.args)

    html = text(operator.get(page))
    assert "It cannot be undone: the jobs are too many or too large to be kept." in html
    assert button(html) is None


def test_an_action_that_goes_on_in_a_job_can_be_undone_when_it_is_over(broker, operator, inspector, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    monkeypatch.setattr(bulk_pages, "STEP", 2)
    die(broker, *"abcde")
    html = text(operator.get(f"{PAGE}discard-all/", {"queue": QUEUE}))
    page = operator.post(f"{PAGE}discard-all/", hidden_fields(html))["Location"]
    assert inspector.queues.get(QUEUE).dead == 3
    assert button(text(operator.get(page))) is None  # it goes on
    (rest,) = inspector.job_list.each(QUEUE, "queued")

    began = time.monotonic()
    run_bulk_action.func(*rest.args)
    html = text(operator.get(page))
    passed = time.monotonic() - began
    monkeypatch.undo()
    press(operator, html)

    assert 30 - passed <= int(re.search(r"\(for (\d+) seconds\)", html)[1]) <= 30
    assert inspector.queues.get(QUEUE).dead == 5


def test_an_undo_that_takes_long_goes_on_in_a_job(broker, operator, inspector, monkeypatch):
    html = discard(operator, [dead_job(broker).id for _ in range(250)])
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)

    _, words = press(operator, html)

    assert f"Undone: 50 jobs are back. Jobs of these queues do the rest: {QUEUE}." in words
    assert f"The rest of queue {QUEUE} is kept for 7 days. To put back more of it here, press Undo." in words
    (rest,) = inspector.job_list.each(QUEUE, "queued")
    assert rest.task == run_bulk_action.name
    assert run_bulk_action.func(*rest.args) == 200
    assert inspector.queues.get(QUEUE).dead == 250


def test_an_undo_in_a_paused_queue_goes_on_by_hand(redis, broker, operator, inspector, monkeypatch):
    html = discard(operator, [dead_job(broker).id for _ in range(130)])
    inspector.pause(QUEUE)
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)

    for left in (80, 30):
        _, html = press(operator, html)
        assert inspector.queues.get(QUEUE).dead == 130 - left
    _, html = press(operator, html)

    assert inspector.queues.get(QUEUE).dead == 130
    assert button(html) is None


def test_an_undo_that_no_job_can_continue_goes_on_by_hand(broker, operator, inspector, monkeypatch):
    html = discard(operator, [dead_job(broker).id for _ in range(60)])
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    queued_job(broker)
    inspector.limits.set_queue(QUEUE, max_waiting=1)

    _, html = press(operator, html)
    press(operator, html)

    assert inspector.queues.get(QUEUE).dead == 60


@pytest.mark.parametrize("what", ["selected", "one", "all"])
def test_a_discard_whose_reply_is_lost_can_be_undone(broker, operator, inspector, monkeypatch, what):
    ids = die(broker, "a", "b")
    one = f"/admin/django_rtq/job/{ids[0]}/discard/"
    url = {"selected": f"{PAGE}discard/", "one": one, "all": f"{PAGE}discard-all/"}[what]
    asked = (
        operator.post(url, {"queue": QUEUE, "id": ids}) if what == "selected" else operator.get(url, {"queue": QUEUE})
    )
    act = Actions.act

    def lose_reply(self, *args):
        act(self, *args)
        raise BrokerUnavailable("no reply")

    with monkeypatch.context() as patch:
        patch.setattr(Actions, "act", lose_reply)
        answer = operator.post(url, hidden_fields(text(asked)))
    assert answer.status_code == 503
    again = re.search(r'<form method="post" action="([^"]*)">(.*?)</form>', answer.content.decode(), re.DOTALL)
    left = inspector.queues.get(QUEUE).dead

    operator.post(unescape(again[1]), hidden_fields(again[2]))
    html = said(operator)
    assert "This was done before, and can be undone." in html
    press(operator, html)

    assert (left, inspector.queues.get(QUEUE).dead) == (1 if what == "one" else 0, 2)


def test_an_error_in_the_middle_is_logged_and_the_button_still_works(broker, operator, inspector, monkeypatch):
    ids = [dead_job(broker).id for _ in range(150)]
    html = discard(operator, ids)
    restore, calls = undo.Undos.restore, []

    def break_at_second(self, *args):
        calls.append(args)
        if len(calls) > 1:
            raise BrokerUnavailable("no reply")
        return restore(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(undo.Undos, "restore", break_at_second)
        url, fields = button(html)
        assert operator.post(url, fields).status_code == 503
    assert logged()[0].startswith("Undone: 50 jobs are back.")

    press(operator, html)

    assert inspector.queues.get(QUEUE).dead == 150


def test_a_discarded_job_of_a_lost_worker_comes_back(broker, operator, inspector):
    (job_id,) = die(broker, "a")
    html = discard(operator, [job_id])
    let_lapse(broker, "failing")
    press(operator, html)

    assert inspector.requeue(QUEUE, [job_id]) == [job_id]
