"""Permissions of every page and action, for every kind of user."""

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from django_rtq.console import permissions
from django_rtq.models import Schedule
from tests.console.admin.conftest import ALL, MAIL, every_page, url_of
from tests.support.jobs import QUEUE, let_lapse
from tests.support.snapshots import snapshot

pytestmark = pytest.mark.long

PAGES = dict(every_page())
LOOKS = [name for name, page in PAGES.items() if page.method == "GET"]
ACTS = [name for name, page in PAGES.items() if page.method != "GET"]
#: The pages of Django, and the permission that each needs.
OF_SCHEDULES = {"changelist": "view", "add": "add", "change": "view", "history": "view", "delete": "delete"}


def given(name, jobs):
    """The data that a form of that page would post."""
    return {
        "job_bulk_requeue": {"list": f"queue:{QUEUE} state:dead", "id": [jobs.dead.id]},
        "job_bulk_discard": {"q": f"queue:{QUEUE}", "id": [jobs.dead.id], "until_ms": 10**15},
        "job_bulk_run_now": {"q": f"queue:{QUEUE}", "until_ms": 10**15},
        "job_bulk_cancel": {"q": "client:florist", "until_ms": 10**14},
        "job_bulk_erase": {"q": "client:florist", "until_ms": 10**15},
        "job_bulk_terminate": {"q": f"queue:{QUEUE} state:running", "id": [jobs.running.id], "until_ms": 10**15},
        "job_bulk_purge": {"q": f"queue:{QUEUE}", "until_ms": 10**15, "name": QUEUE},
        **{f"client_{action}": {"queue": QUEUE, "client": "florist"} for action in ("pause", "resume")},
        "client_limits": {"queue": QUEUE, "client": "florist", "max_running": "3"},
        **{f"queue_{action}": {"max_running": "3"} for action in ("limits", "limit_clients")},
        "queue_forget": {"name": "mail"},
        "job_send": {"event": "approved", "token": "1"},
        "job_edit": {"queue": QUEUE, "args": '["bakery", 9]', "kwargs": "{}"},
        "registeredtask_enqueue": {"args": '["bakery", 9]'},
    }.get(name, {"queue": QUEUE})


@pytest.fixture
def seen(redis, broker, jobs):
    """A snapshot of Redis, without the keys that change by themselves."""
    broker.sign_on([QUEUE], "w1")
    broker.register_queues(["mail"])
    redis.hset(broker.keys.worker("w1"), mapping={"supervisor_name": "supervisor-1", "host": "w1"})
    redis.zadd(broker.keys.workers, {"w1": 1})
    broker.enqueue(QUEUE, [])
    return lambda: snapshot(redis, times=False)


@pytest.mark.parametrize("name", PAGES)
def test_who_has_not_all_permissions_of_a_page_is_refused_and_changes_nothing(name, jobs, person, seen):
    """Nor is a form of another site taken."""
    before, url, form, own = seen(), url_of(name, jobs), given(name, jobs), PAGES[name].permission
    for answer in (Client().get(url), Client().post(url, form)):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/?next=")
    not_enough = [[], [permission for permission in ALL if permission != own]]
    if own != permissions.VIEW:
        not_enough += [[own], [permissions.VIEW]]
    for client in (person(*some) for some in not_enough):
        assert (client.get(url).status_code, client.post(url, form).status_code) == (403, 403)
    assert person(*ALL, enforce_csrf_checks=True).post(url, form).status_code == 403
    assert seen() == before
    assert not LogEntry.objects.exists()


def test_there_are_no_other_addresses():
    names = {pattern.name for each in admin.site.get_urls() for pattern in getattr(each, "url_patterns", ())}
    ours = {name.removeprefix("django_rtq_") for name in names if name and name.startswith("django_rtq_")}
    assert ours == {*PAGES, *(f"schedule_{name}" for name in OF_SCHEDULES)}


@pytest.mark.parametrize("name", OF_SCHEDULES)
@pytest.mark.django_db(transaction=True)
def test_who_has_not_the_permission_of_a_page_of_schedules_is_refused_and_changes_nothing(name, broker, person):
    row = Schedule(name="nightly", task=MAIL, args=["bakery", 7], cron="0 5 * * *")
    row.save()
    before, arguments = broker.schedules.read().rows, [] if name in ("changelist", "add") else [row.pk]
    url = reverse(f"admin:django_rtq_schedule_{name}", args=arguments)
    own = f"django_rtq.{OF_SCHEDULES[name]}_schedule"
    others = [f"django_rtq.{each}_schedule" for each in ("view", "add", "delete") if each != OF_SCHEDULES[name]]
    form = {"post": "yes", "name": "another", "task": MAIL, "args": '["bakery", 1]', "kwargs": "{}", "every": "60"}

    for answer in (Client().get(url), Client().post(url, form)):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/?next=")
    for client in (person(), person(*ALL), person(*ALL, *others)):
        assert (client.get(url).status_code, client.post(url, form).status_code) == (403, 403)
    assert person(*ALL, own).get(url).status_code == 200
    assert person(*ALL, own, enforce_csrf_checks=True).post(url, form).status_code == 403
    assert broker.schedules.read().rows == before
    assert list(Schedule.objects.values_list("pk", flat=True)) == [row.pk]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("name", LOOKS)
def test_pages_need_the_permission_to_look_and_what_they_say(name, jobs, viewer):
    expected = 200 if PAGES[name].permission == permissions.VIEW else 403
    assert viewer.get(url_of(name, jobs), follow=True).status_code == expected


@pytest.mark.parametrize("name", ACTS)
def test_who_has_the_permission_acts_and_it_is_written_down_once(name, jobs, person, seen, broker, readers, rtq):
    client = person(permissions.VIEW, PAGES[name].permission)
    let_lapse(broker, "w1")
    if name == "queue_resume":
        rtq.queues[QUEUE].pause()
    if name == "registeredtask_resume":
        rtq.tasks[MAIL].pause(QUEUE)
    if name == "client_resume":
        rtq.clients["florist"].pause(QUEUE)
    before = seen()

    answer = client.post(url_of(name, jobs), given(name, jobs))

    assert answer.status_code == 302
    assert LogEntry.objects.count() == 1
    assert seen() != before


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if page.method == "POST"])
def test_actions_are_not_done_by_looking(name, jobs, operator, seen):
    before = seen()
    assert operator.get(url_of(name, jobs)).status_code == 405
    assert seen() == before


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if page.method == "BOTH"])
def test_a_page_that_asks_changes_nothing(name, jobs, operator, seen):
    before = seen()
    answer = operator.get(url_of(name, jobs))
    assert answer.status_code == 200
    assert 'name="csrfmiddlewaretoken"' in answer.content.decode()
    assert seen() == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("name", LOOKS)
def test_pages_that_only_show_take_no_forms(name, jobs, operator):
    assert operator.post(url_of(name, jobs)).status_code == 405


def test_the_menu_shows_the_entries_only_to_those_who_may_look(viewer, person):
    assert b"/admin/django_rtq/queue/" in viewer.get("/admin/").content
    assert b"django_rtq" not in person().get("/admin/").content


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        (permissions.REQUEUE, [b"Requeue</button>"]),
        (permissions.DISCARD, [b"Discard \xe2\x80\xa6</a>"]),
        (permissions.EDIT, [b"Requeue with other arguments"]),
    ],
)
def test_what_is_not_allowed_is_not_shown(permission, words, jobs, person):
    url = url_of("job_change", jobs)
    without, having = person(permissions.VIEW).get(url).content, person(permissions.VIEW, permission).get(url).content
    for word in words:
        assert word not in without
        assert word in having
