"""The log: who did what, when, with how many jobs."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.utils import timezone

from django_rtq.admin import permissions
from django_rtq.admin.action_log import MAX_CHARACTERS, LogFilter, log_action, read_log
from django_rtq.admin.pages import log
from django_rtq.models import Client, Job, Queue, RegisteredTask, Schedule
from tests.admin.conftest import ALL, MAIL, text, url_of
from tests.support.jobs import QUEUE

PAGE = "/admin/django_rtq/log/"


@pytest.fixture
def act(rf, db):
    """Writes an entry, as a page with that URL does."""

    def write(entry, message="Done.", ids=(), *, user="ann", page="queue_pause", **facts):
        request = rf.get("/")
        request.user = User.objects.get_or_create(username=user, defaults={"is_staff": True})[0]
        request.resolver_match = type("Match", (), {"url_name": f"django_rtq_{page}"})()
        log_action(request, entry, message, ids, **facts)

    return write


def found(**wanted):
    """The texts of the entries that match, the newest first."""
    return [entry.text for entry in read_log(LogFilter(**wanted), limit=100)]


def shown(answer):
    return [row["entry"].text for row in answer.context["rows"]]


def test_an_entry_says_who_what_about_what_and_how_many(act):
    act(Job(name="j1"), "Cancelled.", page="job_cancel", queue="mail", task="shop.send", client="acme")

    (entry,) = read_log(LogFilter(), limit=9)

    assert (entry.user, entry.action, entry.text, entry.kind, entry.subject) == (
        "ann",
        "cancel",
        "Cancelled.",
        "job",
        "j1",
    )
    assert (entry.queue, entry.task, entry.client, entry.jobs, entry.count) == ("mail", "shop.send", "acme", ["j1"], 1)
    assert timezone.now() - entry.at < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        ({}, ["d", "c", "b", "a"]),
        ({"user": "bob"}, ["d"]),
        ({"action": "pause"}, ["c", "a"]),
        ({"action": "requeue"}, ["b"]),
        ({"queue": "mail"}, ["c", "a"]),
        ({"queue": "mai"}, []),
        ({"queue": "low"}, ["d"]),
        ({"queue": "high"}, ["d"]),
        ({"task": "shop.send"}, ["b"]),
        ({"client": "ac\"me'%é"}, ["c"]),
        ({"client": ""}, ["d"]),
        ({"job": "j2"}, ["b"]),
        ({"job": "j"}, []),
        ({"queue": "mail", "client": "ac\"me'%é"}, ["c"]),
        ({"since": timezone.now() + timedelta(days=1)}, []),
        ({"until": timezone.now() + timedelta(days=1), "user": "bob"}, ["d"]),
    ],
)
def test_entries_are_filtered(act, wanted, texts):
    act(Queue(name="mail"), "a")
    act(RegisteredTask(name="shop.send"), "b", ["j1", "j2"], page="deadletter_requeue_all")
    act(Client(name="ac\"me'%é"), "c", queue="mail", page="client_pause")
    act(Client(name=""), "d", user="bob", page="client_limits", queues=["low", "high"])
    assert found(**wanted) == texts


@pytest.mark.parametrize(
    ("page", "action"),
    [
        ("queue_pause", "pause"),
        ("job_run_now", "run_now"),
        ("job_bulk_cancel_all", "cancel"),
        ("worker_host_stop", "stop"),
        ("x", "change"),
    ],
)
def test_an_action_is_named_after_its_page(act, page, action):
    act(Queue(name="mail"), page=page)
    assert read_log(LogFilter(), limit=9)[0].action == action


def test_entries_about_other_models_are_not_ours(act, admin_user):
    LogEntry.objects.log_actions(admin_user.pk, [admin_user], 2, "Changed.", single_object=True)
    LogEntry.objects.log_actions(admin_user.pk, [Schedule(pk=1, name="nightly")], 1, "Added.", single_object=True)
    (entry,) = read_log(LogFilter(), limit=9)
    assert (entry.text, entry.action, entry.kind, entry.count) == ("Added.", "add", "schedule", None)


@pytest.mark.parametrize("message", ["", "{", '"x"', "7", "Paused."])
def test_messages_that_are_not_ours_are_shown_as_they_are(admin_user, operator, message):
    LogEntry.objects.log_actions(admin_user.pk, [Queue(name="mail")], 2, message, single_object=True)
    assert operator.get(PAGE).status_code == 200


@pytest.mark.parametrize(
    "message",
    [
        '{"jobs": null}',
        '{"jobs": 7}',
        '{"jobs": [""]}',
        '{"jobs": [null, {}, "\\ud800"], "queue": "\\ud800"}',
        '{"count": "x"}',
        '{"count": NaN}',
        '{"client": []}',
        '{"action": {"a": 1}, "text": null, "queue": [], "task": 5}',
        "[5]",
        '[{"changed": 5}]',
        '[{"changed": {"fields": 7}}]',
        '[{"added": {"name": "x"}}]',
        "[null]",
        "[" * 100_000,
        "[" + "9" * 5000 + "]",
    ],
)
def test_json_of_others_is_no_error(broker, admin_user, operator, message):
    kinds = [Queue(name=QUEUE), Client(name="a"), RegisteredTask(name=MAIL), Job(name="j1")]
    for kind in kinds:
        LogEntry.objects.log_actions(admin_user.pk, [kind], 2, message, single_object=True)
    answer = operator.get(PAGE)
    assert answer.status_code == 200
    assert len(answer.context["rows"]) == len(kinds)


def test_filters_heed_case_in_every_database(act):
    for number in range(3):
        act(Queue(name="mail"), f"a{number}")
        act(Queue(name="Mail"), f"b{number}", ["J1"])
    assert found(queue="mail") == ["a2", "a1", "a0"]
    assert found(job="j1") == []
    pages = [read_log(LogFilter(queue="mail"), limit=2)]
    pages.append(read_log(LogFilter(queue="mail"), limit=2, before=pages[0][-1].id))
    assert [[entry.text for entry in page] for page in pages] == [["a2", "a1"], ["a0"]]


def test_long_texts_and_many_ids_are_cut(act):
    act(Queue(name="mail"), "x" * 5000, [f"{n}" * 100 for n in range(1000, 1100)])
    (entry,) = read_log(LogFilter(), limit=9)
    assert (len(entry.text), len(entry.jobs), entry.count, len(entry.jobs[0])) == (MAX_CHARACTERS, 20, 100, 64)


def test_the_page_is_filtered_and_paged(act, operator, monkeypatch):
    monkeypatch.setattr(log, "PAGE_SIZE", 2)
    for n in range(5):
        act(Queue(name="mail"), f"a{n}")
    act(Queue(name="other"), "b")

    answer = operator.get(PAGE, {"queue": "mail"})
    pages = [shown(answer)]
    while answer.context["next_url"]:
        answer = operator.get(answer.context["next_url"])
        pages.append(shown(answer))

    assert pages == [["a4", "a3"], ["a2", "a1"], ["a0"]]
    assert shown(operator.get(PAGE, {"queue": "mail", "until": "2001-01-01T00:00"})) == []
    assert "No entries." in text(operator.get(PAGE, {"user": "nobody"}))


def test_it_needs_a_permission_of_its_own(act, viewer, person, broker):
    act(Queue(name=QUEUE), "Stopped for the night.")
    assert viewer.get(PAGE).status_code == 403
    assert PAGE not in text(viewer.get("/admin/django_rtq/queue/"))
    reader = person(permissions.VIEW, permissions.LOG)
    assert "Stopped for the night." in text(reader.get(PAGE))
    for client, sees in ((viewer, False), (reader, True)):
        assert ("Stopped for the night." in text(client.get(f"/admin/django_rtq/queue/{QUEUE}/"))) == sees


def test_pages_show_the_last_actions_on_what_they_are_about(broker, person, jobs):
    operator = person(*ALL)
    dead, queued = jobs.dead, jobs.queued
    operator.post(f"/admin/django_rtq/job/{dead.id}/requeue/", {"queue": QUEUE})
    operator.post(f"/admin/django_rtq/queue/{QUEUE}/pause/")
    pages = {
        url_of("queue_change"): ["Paused.", "Requeued."],
        url_of("registeredtask_change"): ["Requeued."],
        "/admin/django_rtq/client/client/?client=bakery": ["Requeued."],
        f"/admin/django_rtq/job/{dead.id}/": ["Requeued."],
        f"/admin/django_rtq/job/{queued.id}/": [],
    }
    for page, texts in pages.items():
        answer = operator.get(page)
        assert [row["entry"].text for row in answer.context["recent_actions"]] == texts
        if texts:
            assert shown(operator.get(answer.context["log_url"])) == texts


@pytest.mark.parametrize("name", ["mail", "", 'a"b', "ä"])
def test_subjects_are_linked(act, operator, broker, name):
    for kind in (Queue, Client, RegisteredTask, Job):
        act(kind(name=name))
    rows = operator.get(PAGE).context["rows"]
    for row in rows:
        assert row["url"] == "" or row["url"].startswith("/admin/django_rtq/")
    assert len([row for row in rows if row["url"]]) == (4 if name else 1)
    assert MAIL not in text(operator.get(PAGE))
