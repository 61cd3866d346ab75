"""Schedules in the admin, as a person with a browser meets them."""

import json
import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import override_settings
from django.urls import reverse

from django_rtq import cron, every, task
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.console.reading.details import TaskPause
from django_rtq.console.redaction import HIDDEN
from django_rtq.console.schedule_status import ScheduleStatus
from django_rtq.console.subjects.schedules import why_not
from django_rtq.core.scheduler.registry import ScheduledTask
from django_rtq.core.scheduler.scheduler import Dispatcher
from django_rtq.core.tasks import registry
from django_rtq.models import Schedule
from tests.console.incidents.overviews import NOW, overview, row, worker
from tests.support.jobs import QUEUE, take, take_all
from tests.support.redis_server import UNREACHABLE

LIST = reverse("admin:django_rtq_schedule_changelist")
ADD = reverse("admin:django_rtq_schedule_add")
TASK = f"{__name__}.report"
FORM = {
    "name": "nightly",
    "task": TASK,
    "args": "[7]",
    "kwargs": "{}",
    "cron": "0 5 * * *",
    "tz": "Europe/Berlin",
    "missed": "once",
    "cap": "100",
    "overlap": "allow",
    "enabled": "on",
}


def report(number):
    """The function of a task."""


def sign_in(user, password, **options):
    """The function of another task."""


@pytest.fixture(autouse=True)
def _task(no_tasks):
    task(report)


@pytest.fixture
def nightly(transactional_db, broker):
    row = Schedule(name="nightly", task=TASK, args=[7], cron="0 5 * * *", tz="Europe/Berlin")
    row.save()
    return row


def act(client, action, *rows):
    """Run an action of the change list. Returns the next page."""
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    return client.post(LIST, data, follow=True).text


@pytest.mark.django_db(transaction=True)
def test_a_person_adds_one_and_it_is_in_force(admin_client, broker):
    page = admin_client.get(ADD).text
    assert f'<option value="{TASK}">' in page

    answer = admin_client.post(ADD, FORM)

    assert answer.status_code == 302
    assert list(broker.schedules.read().rows) == ["nightly"]
    assert LogEntry.objects.get().object_repr == "nightly"


@pytest.mark.django_db
def test_what_makes_no_sense_is_told_at_its_field(admin_client, broker):
    page = admin_client.post(ADD, {**FORM, "cron": "* *", "args": "{", "kwargs": ""}).text

    assert "has 2 fields, but needs five" in page
    assert "Enter a valid JSON." in page
    assert not Schedule.objects.exists()


def test_the_list_tells_the_time_in_words_and_what_became_of_the_last_job(admin_client, broker, nightly):
    dispatcher = Dispatcher(broker, [QUEUE])
    broker.maintain([QUEUE])
    dispatcher.fire_due()
    (entry,) = dispatcher.entries
    assert entry.fire(broker, broker.schedules.states([QUEUE])[0]) == "fired"

    page = admin_client.get(LIST).text

    assert "At 05:00 every day (Europe/Berlin)" in page
    assert "a.m. (in " in page
    assert " s ago)" in page
    assert "rtq-state-queued" in page


def test_what_redis_does_not_know_is_told(admin_client, nightly):
    Schedule.objects.update(cron="0 6 * * *")

    assert "not in Redis yet" in admin_client.get(LIST).text


def test_redis_away_is_told_and_the_rows_are_there(admin_client, nightly):
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        page = admin_client.get(LIST).text
        form = admin_client.get(reverse("admin:django_rtq_schedule_change", args=[nightly.pk])).text

    assert "nightly" in page
    assert "connect" in page.lower()
    assert "0 5 * * *" in form


def test_run_now_enqueues_the_job_and_writes_it_down(admin_client, broker, nightly):
    page = act(admin_client, "run_now", nightly)

    job = take(broker)
    assert (job.task, job.args) == (TASK, [7])
    assert f"Schedule nightly: Run now: job {job.id}." in page
    assert LogEntry.objects.get().change_message == f"Run now: job {job.id}."


def test_they_are_switched_off_and_on(admin_client, broker, nightly):
    other = Schedule(name="other", task=TASK, args=[1], every=5, enabled=False)
    other.save()

    assert "Schedule nightly: Disabled." in act(admin_client, "disable", nightly)
    assert broker.schedules.read().rows["nightly"]["enabled"] is False
    assert "Schedule other: Enabled." in act(admin_client, "enable", nightly, other)
    assert {row["enabled"] for row in broker.schedules.read().rows.values()} == {True}
    assert "Enabled." not in act(admin_client, "enable", other)  # it was already
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == ["Disabled.", *["Enabled."] * 2]


def test_who_may_look_may_not_act(person, broker, nightly):
    client = person("view_schedule")
    page = client.get(LIST).text
    for action in ("run_now", "enable", "disable"):
        assert f'value="{action}"' not in page
        act(client, action, nightly)

    assert take_all(broker) == []
    assert Schedule.objects.get().enabled
    assert client.get(ADD).status_code == 403
    assert not LogEntry.objects.exists()


def test_the_list_stands_among_the_other_pages(nightly, person):
    html = person("view_schedule", "view_queue").get(LIST).content.decode()
    places = html[html.index('class="rtq-navigation"') :].partition("</nav>")[0]
    assert "/admin/django_rtq/queue/" in places
    assert f'href="{LIST}" aria-current="page"' in places


# -- what needs the permission to enqueue

ALL_OF_SCHEDULES = ("view_schedule", "add_schedule", "change_schedule", "delete_schedule")


def change_of(row):
    return reverse("admin:django_rtq_schedule_change", args=[row.pk])


def test_who_may_edit_schedules_but_not_enqueue_starts_nothing(person, broker, nightly):
    off = Schedule(name="off", task=TASK, args=[1], every=5, enabled=False)
    off.save()
    before = broker.schedules.read().rows
    client = person("view_queue", *ALL_OF_SCHEDULES)
    page = client.get(LIST).text

    assert client.get(ADD).status_code == 403
    assert client.post(ADD, {**FORM, "name": "another"}).status_code == 403
    assert client.post(change_of(nightly), {**FORM, "args": "[8]"}).status_code == 403
    assert client.post(change_of(off), {**FORM, "name": "off"}).status_code == 403
    assert f'href="{ADD}"' not in page
    for action in ("run_now", "enable"):
        assert f'value="{action}"' not in page
        act(client, action, nightly, off)

    assert take_all(broker) == []
    assert broker.schedules.read().rows == before
    assert not LogEntry.objects.exists()


def test_who_may_not_enqueue_sees_disables_and_deletes_them_all_the_same(person, broker, nightly):
    client = person("view_queue", *ALL_OF_SCHEDULES)

    assert 'name="_save"' not in client.get(change_of(nightly)).text
    assert "Schedule nightly: Disabled." in act(client, "disable", nightly)
    assert not Schedule.objects.get().enabled
    client.post(reverse("admin:django_rtq_schedule_delete", args=[nightly.pk]), {"post": "yes"})
    assert not Schedule.objects.exists()


# -- secrets


def test_secrets_are_hidden_and_stay_what_they_were(person, broker, nightly):
    task(sign_in)
    name, call = f"{__name__}.sign_in", {"args": ["ann", "s3cret"], "kwargs": {"api_token": "s3cret-2", "n": 1}}
    Schedule.objects.filter(pk=nightly.pk).update(task=name, **call)
    client = person("view_queue", "enqueue_job", *ALL_OF_SCHEDULES)
    assert "s3cret" not in client.get(change_of(nightly)).text

    kwargs = {"api_token": HIDDEN, "n": 2}
    given = {**FORM, "task": name, "args": json.dumps(["bob", HIDDEN]), "kwargs": json.dumps(kwargs)}
    assert client.post(change_of(nightly), given).status_code == 302

    row = Schedule.objects.get()
    assert (row.args, row.kwargs) == (["bob", "s3cret"], {"api_token": "s3cret-2", "n": 2})


def test_secrets_are_hidden_from_those_who_may_only_look(person, broker, nightly):
    Schedule.objects.filter(pk=nightly.pk).update(kwargs={"api_token": "s3cret"})
    html = person("view_schedule").get(change_of(nightly)).text
    assert "s3cret" not in html
    assert HIDDEN in html
    assert Schedule.objects.get().kwargs == {"api_token": "s3cret"}


# -- internal tasks


@pytest.fixture
def chore():
    """The arguments of a job that would discard all dead letters."""
    registry.register(run_bulk_action)
    return {"task": run_bulk_action.name, "args": [QUEUE, "discard", {}, 10**15]}


@pytest.mark.parametrize("enabled", ["on", ""])
def test_nobody_schedules_an_internal_task(person, broker, chore, enabled, transactional_db):
    client = person("view_queue", "enqueue_job", *ALL_OF_SCHEDULES)
    given = {**FORM, "task": chore["task"], "args": json.dumps(chore["args"]), "enabled": enabled}

    assert chore["task"] not in client.get(ADD).text
    assert "is internal to django_rtq" in client.post(ADD, given).text
    assert not Schedule.objects.exists()
    assert broker.schedules.read().rows == {}


def test_a_row_of_an_internal_task_is_neither_run_nor_enabled_nor_made_of_another(person, broker, nightly, chore):
    Schedule.objects.bulk_create([Schedule(name="sneaky", every=1, enabled=False, **chore)])
    sneaky = Schedule.objects.get(name="sneaky")
    client = person("view_queue", "enqueue_job", *ALL_OF_SCHEDULES)

    assert "is internal to django_rtq" in act(client, "run_now", sneaky)
    assert "is internal to django_rtq" in act(client, "enable", sneaky)
    changed = {**FORM, "task": chore["task"], "args": json.dumps(chore["args"])}
    assert "is internal to django_rtq" in client.post(change_of(nightly), changed).text

    assert take_all(broker) == []
    assert list(broker.schedules.read().rows) == ["nightly"]


# -- schedules of the code and the settings


def declare(**options):
    task(schedule=cron("0 0 1 * *", name="monthly", **options))(report)


def columns(page):
    """The cells of the schedules that are no rows, without tags."""
    found = re.findall(r'<th scope="row">.*?</tr>', page.partition('id="content-main"')[0], re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", each)).strip() for each in found]


@pytest.mark.django_db
def test_the_list_has_those_of_code_and_settings(admin_client, broker, settings):
    declare(args=[7])
    beat = {"task": TASK, "every": 20, "args": [1]}
    with override_settings(RTQ={**settings.RTQ, "SCHEDULES": {"beat": beat}}):
        found = columns(admin_client.get(LIST).text)

    assert [each.partition(" ")[0] for each in found] == ["beat", "monthly"]
    assert "in the settings No scheduler is running for queue default. report default Every 20 s " in found[0]
    assert "in the code" in found[1]


def test_a_row_that_cannot_run_is_in_its_own_list_only(admin_client, nightly):
    registry._tasks.clear()
    page = admin_client.get(LIST).text

    assert "No task" in page
    assert columns(page) == []


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "{row.pk}/change/"])
def test_what_is_wrong_with_the_settings_of_redis_is_told(admin_client, nightly, settings, path):
    with override_settings(RTQ={**settings.RTQ, "REDIS": "nonsense://x"}):
        answer = admin_client.get(LIST + path.format(row=nightly))

    assert answer.status_code == 200
    assert "does not start with redis://" in answer.text


@pytest.mark.django_db
def test_the_search_finds_them_too(admin_client, broker):
    task(schedule=[every(minutes=1, name=f"n{number}", args=[1]) for number in range(3)])(report)

    assert len(columns(admin_client.get(LIST).text)) == 3
    assert [each.partition(" ")[0] for each in columns(admin_client.get(f"{LIST}?q=N2").text)] == ["n2"]
    assert columns(admin_client.get(f"{LIST}?q=gone").text) == []


@pytest.mark.django_db
def test_who_may_not_see_queues_gets_no_links(person, broker):
    declare(args=[7])
    page = person("view_schedule").get(LIST).text

    assert len(columns(page)) == 1
    assert "/registeredtask/" not in page


@pytest.mark.django_db
def test_the_list_asks_redis_as_often_for_many_as_for_one(admin_client, broker, round_trips, monkeypatch):
    monkeypatch.setattr("django_rtq.console.reading.overview.SHARED_SECONDS", 60)

    def asked(count):
        registry._tasks.clear()
        task(schedule=[every(minutes=1, name=f"n{number}", args=[1]) for number in range(count)])(report)
        admin_client.get(LIST)
        round_trips.clear()
        assert len(columns(admin_client.get(LIST).text)) == count
        return len(round_trips)

    assert asked(1) == asked(40)


SLOT = NOW - timedelta(hours=3)
PAUSE = TaskPause(task=f"{__name__}.sign_in", by="ada", seconds=9.0, held=1)


@pytest.mark.parametrize(
    ("queue", "facts", "is_bad", "why"),
    [
        ({}, {}, False, ""),
        ({}, {"enabled": False}, False, "Switched off."),
        ({"scheduler_seconds": 400.0}, {}, True, "No scheduler is running for queue mail."),
        ({}, {"has_begun": False}, True, "The scheduler of queue mail does not know it."),
        ({"scheduler_seconds": 400.0}, {"missed_slot": SLOT}, True, "a.m. was missed: no scheduler is running for"),
        ({}, {"missed_slot": SLOT}, True, "was missed: the log of the scheduler of queue mail says why."),
        ({}, {"missed_slot": SLOT, "missed": "skip"}, False, "was missed, and missed runs are skipped."),
        ({"paused": True}, {}, True, "Queue mail is paused: its jobs wait."),
        ({"paused_tasks": (PAUSE,)}, {}, True, "The task is paused in queue mail: its jobs wait."),
        ({}, {"queue": "low", "row": "low"}, True, "No worker serves queue low: its jobs wait."),
        ({}, {"is_skipped": True, "overlap": "skip"}, False, "the job of the run before was not over."),
        ({}, {"is_skipped": True, "unique": True}, False, "an equal job existed."),
        ({}, {"is_skipped": True}, False, "the queue was full."),
    ],
)
def test_why_one_does_not_run(queue, facts, is_bad, why):
    options = {name: facts[name] for name in ("missed", "overlap") if name in facts}
    schedule = every(minutes=1, name="beat", **options)
    known = task(queue_name=facts.get("queue", "mail"), unique=facts.get("unique", False))(sign_in)
    entry = ScheduledTask(task=known, schedule=schedule)
    status = ScheduleStatus(
        name="beat",
        task=known.name,
        queue=known.queue,
        source="code",
        enabled=facts.get("enabled", True),
        has_begun=facts.get("has_begun", True),
        missed_slot=facts.get("missed_slot"),
        is_skipped=facts.get("is_skipped", False),
        entry=entry,
    )

    queues = overview(row(facts.get("row", "mail"), **queue), workers=[worker(queues=["mail"])])
    text, is_wrong = why_not(status, entry, queues)

    assert why in text
    assert (is_wrong, bool(text)) == (is_bad, bool(why))
