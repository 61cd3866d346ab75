"""Rules for all pages: valid HTML, number of round trips to Redis, custom sites and path prefixes."""

import re

import pytest
from django.contrib import admin
from django.test import override_settings
from django.urls import include, path, reverse, set_script_prefix

from django_rtq import admin as pages
from django_rtq.console.admin.pages.page_admin import page_url, show
from django_rtq.console.admin.pages.queues import QueueAdmin
from django_rtq.console.nouns import Place
from django_rtq.exceptions import RedisNotAllowed
from django_rtq.models import Queue
from django_rtq.testing import captured
from tests.console.admin.conftest import every_page, links, text, url_of
from tests.console.admin.test_dead_letters import hidden_fields
from tests.support.jobs import QUEUE, claimed_job
from tests.support.redis_server import UNREACHABLE

SHOWN = [name for name, page in every_page() if page.method != "POST"]

other = admin.AdminSite(name="other")
pages.register(other)
urlpatterns = [path("office/", other.urls), path("shop/", include([path("admin/", admin.site.urls)]))]


def html_of_ours(response):
    """The part of a page within the admin layout."""
    whole = text(response)
    return whole[whole.index('<div class="rtq">') : whole.index("</main>")]


@pytest.mark.parametrize("name", SHOWN)
def test_every_page_has_its_title_as_heading_and_its_tables_have_captions(name, jobs, broker, operator):
    claimed_job(broker, "running", queue="other")
    answer = operator.get(url_of(name, jobs))
    html = html_of_ours(answer)

    assert '<link rel="stylesheet" href="/static/django_rtq/pages.css">' in text(answer)
    assert re.findall(r"<h1>(.*?)</h1>", html) == [answer.context["title"]]
    assert html.count("<table") == html.count("<caption")


@pytest.mark.parametrize("name", SHOWN)
def test_pages_ask_redis_a_fixed_number_of_times(name, jobs, operator, round_trips):
    operator.get(url_of(name, jobs))
    most = {"client_changelist": 3, "job_search": 4, "job_memory": 4, "deadletter_changelist": 4}
    most |= {"queue_change": 3, "workflow_changelist": 3, "workflow_change": 3, "job_bulk_erase": 7}
    # How long tasks usually run is read once a minute, if a job runs.
    most |= {"job_changelist": 3, "queue_changelist": 4}
    # Where jobs can go is read as for the overview, unless that was read in the last second.
    most |= {"registeredtask_changelist": 4, "registeredtask_change": 4, "job_requeue": 3, "job_bulk_requeue": 5}
    assert len(round_trips) <= most.get(name, 2)


@pytest.mark.parametrize("name", SHOWN)
def test_pages_say_it_when_redis_is_away(name, operator, settings):
    settings.RTQ = {"REDIS": UNREACHABLE}
    answer = operator.get(url_of(name))
    if name in ("registeredtask_enqueue", "worker_stop", "job_outbox"):
        assert answer.status_code == 200  # these do not ask Redis
    else:
        assert answer.status_code == 503
        assert "Redis is not responding" in text(answer)


def test_pages_say_it_when_redis_holds_data_of_another_format(redis, jobs, operator):
    redis.set("rtq:format", "3 abc")
    answer = operator.get(url_of("queue_changelist"))
    assert answer.status_code == 503
    assert "Redis returned an error" in text(answer)
    assert "Redis holds data in format 3 (key rtq:format)" in text(answer)


@pytest.mark.parametrize("method", ["get", "post"])
def test_what_is_not_asked_for_again_does_not_promise_it(method, operator, settings):
    settings.RTQ = {"REDIS": UNREACHABLE, "ADMIN_REFRESH_SECONDS": 0 if method == "get" else 4}
    name = "queue_changelist" if method == "get" else "queue_pause"
    answer = getattr(operator, method)(url_of(name))
    assert answer.status_code == 503
    assert "Refresh" not in answer
    assert "tries again" not in text(answer)


def test_an_action_can_be_sent_again_when_redis_is_back(operator, readers):
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        answer = operator.post(url_of("queue_pause"), {"until": "", "next": "/admin/<&>/"})
    assert "It is not known whether your action was performed." in text(answer)
    form = re.search(r'<form method="post" action="([^"]*)">(.*?)</form>', answer.content.decode(), re.DOTALL)
    assert "csrfmiddlewaretoken" in form[2]
    assert hidden_fields(form[2]) == {"until": [""], "next": ["/admin/<&>/"]}

    assert operator.post(form[1], hidden_fields(form[2])).status_code == 302

    assert readers.queues.get(QUEUE).paused


@pytest.mark.parametrize("name", SHOWN)
@override_settings(ROOT_URLCONF=__name__)
def test_on_a_site_of_the_project_every_link_stays_on_it(name, jobs, operator):
    url = url_of(name, jobs).replace("/shop/admin/", "/office/")
    html = text(operator.get(url))
    ours = [link for link in links(html) if "django_rtq" in link and "/static/" not in link]
    assert ours
    assert all(link.startswith("/office/") for link in ours)


class OurQueueAdmin(QueueAdmin):
    def has_module_permission(self, request):
        return False


@override_settings(ROOT_URLCONF=__name__)
def test_the_admin_of_a_page_can_be_replaced_by_a_subclass(jobs, operator):
    before = other._registry[Queue]
    other.unregister(Queue)
    other.register(Queue, OurQueueAdmin)
    try:
        assert operator.get("/office/django_rtq/queue/").status_code == 200
        names = re.findall(r'href="/office/django_rtq/(\w+)/"', text(operator.get("/office/")))
    finally:
        other._registry[Queue] = before

    assert "deadletter" in names
    assert "queue" not in names


@override_settings(ROOT_URLCONF=__name__)
def test_on_a_site_of_the_project_an_action_comes_back_to_it(jobs, operator):
    answer = operator.post("/office/django_rtq/job/bulk/requeue/", {"id": jobs.dead.id})
    assert answer["Location"].startswith("/office/django_rtq/job/")


@pytest.fixture
def under_tools():
    """Simulates a proxy that strips /tools from each path."""
    yield lambda: set_script_prefix("/tools/")
    set_script_prefix("/")


@pytest.mark.parametrize("name", SHOWN)
def test_under_a_sub_path_every_link_stays_under_it(name, jobs, operator, under_tools):
    url = url_of(name, jobs)
    under_tools()
    answer = operator.get(url)
    ours = [link for link in links(html_of_ours(answer)) if link and not link.startswith(("?", f"{QUEUE}/"))]
    assert ours
    assert all(link.startswith("/tools/") for link in ours)


@pytest.mark.parametrize("name", [name for name in SHOWN if name.endswith(("changelist", "change"))])
def test_a_refresh_brings_the_marked_regions_and_no_more(name, jobs, operator):
    whole = operator.get(url_of(name, jobs))
    part = operator.get(url_of(name, jobs), headers={"X-RTQ-Refresh": "1"})
    regions = re.findall(r'data-rtq-live="(\w+)"', text(whole))
    assert regions
    assert re.findall(r'data-rtq-live="(\w+)"', text(part)) == regions
    assert "nav-sidebar" not in text(part)
    if name != "registeredtask_changelist":  # other tests register tasks, and each has a row
        assert len(part.content) < 30_000


def test_a_refresh_leaves_messages_for_the_page_that_they_are_for(jobs, operator):
    operator.post(url_of("queue_pause"))
    operator.get(url_of("queue_changelist"), headers={"X-RTQ-Refresh": "1"})
    assert "is paused" in text(operator.get(url_of("queue_changelist")))


def test_the_refresh_can_be_switched_off(jobs, operator, settings):
    assert "live.js" in text(operator.get(url_of("queue_changelist")))
    settings.RTQ = {**settings.RTQ, "ADMIN_REFRESH_SECONDS": 0}
    assert "live.js" not in text(operator.get(url_of("queue_changelist")))


@pytest.mark.parametrize("attribute", ["_csp_nonce", "csp_nonce"])
def test_scripts_carry_the_nonce_of_a_policy(attribute, rf, admin_user, jobs):
    request = rf.get(url_of("queue_changelist"))
    request.user = admin_user
    setattr(request, attribute, "abc123")
    show(request, Place())
    answer = QueueAdmin(Queue, admin.site).list(request).render()
    ours = [tag for tag in re.findall(r"<(?:script|link)[^>]*>", text(answer)) if "/django_rtq/" in tag]
    assert len(ours) == 4
    assert all(' nonce="abc123"' in tag for tag in ours)


@pytest.mark.parametrize(
    ("language", "marks"), [("he", ' lang="en" dir="ltr"'), ("de", ' lang="en" dir="ltr"'), ("en", ""), ("pt-BR", "")]
)
def test_what_is_not_translated_is_marked_as_english(jobs, operator, language, marks):
    html = text(operator.get(url_of("queue_changelist"), headers={"Accept-Language": language}))
    assert f'<div class="rtq"{marks}>' in html


def test_where_jobs_are_collected_a_page_says_what_it_needs_and_others_work(admin_client):
    with captured():
        assert admin_client.get("/admin/").status_code == 200
        with pytest.raises(RedisNotAllowed, match=r"private_redis\(\)"):
            admin_client.get("/admin/django_rtq/queue/")


def test_a_query_is_added_to_an_address_without_what_is_empty():
    assert page_url("admin", "queue_change", "mail", query={"state": "dead", "task": "", "x": None, "n": 0}) == (
        f"{reverse('admin:django_rtq_queue_change', args=['mail'])}?state=dead&n=0"
    )
