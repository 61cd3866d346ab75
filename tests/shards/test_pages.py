"""The admin shows one shard at a time, and keeps to it from page to page."""

import pytest
from django.test import override_settings

from django_rtq.broker.brokers import close_brokers
from django_rtq.broker.task_backends import shard_place, view_backend
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.selection import Selection
from django_rtq.inspector.sweep import Sweep
from django_rtq.internal_tasks import enqueue_rest
from django_rtq.jobs.job import shard_in
from tests.admin.conftest import operator, person  # noqa: F401
from tests.app import tasks
from tests.shards.conftest import client_of, waiting
from tests.support.redis_server import UNREACHABLE

OVERVIEW = "/admin/django_rtq/queue/"
IN_1 = {"Referer": f"http://testserver{OVERVIEW}?shard=1"}


@pytest.fixture
def jobs(shards):
    """A job in each shard."""
    return [tasks.note.using(client=client_of(shard)).delay("x") for shard in (0, 1)]


def is_paused(number):
    with view_backend(shard_place(number)):
        return get_inspector().overview.read().queues[0].details.paused


def test_a_page_is_about_the_shard_of_its_address(operator, jobs):  # noqa: F811
    text = operator.get(f"{OVERVIEW}default/", {"shard": "1"}).content.decode()

    assert client_of(1) in text
    assert client_of(0) not in text
    assert 'href="/admin/django_rtq/queue/?shard=0"' in text
    assert 'aria-current="true">Shard 1<' in text
    assert client_of(0) in operator.get(f"{OVERVIEW}default/").content.decode()


def test_a_link_leads_to_the_same_shard(operator, jobs):  # noqa: F811
    answer = operator.get(f"{OVERVIEW}default/?state=queued", headers=IN_1)

    assert (answer.status_code, answer["Location"]) == (302, f"{OVERVIEW}default/?state=queued&shard=1")
    assert operator.get(f"{OVERVIEW}?shard=0", headers=IN_1).status_code == 200


def test_a_job_is_found_in_its_shard(operator, jobs):  # noqa: F811
    for job in jobs:
        assert operator.get(f"/admin/django_rtq/job/{job.id}/", follow=True).status_code == 200


def test_an_action_is_for_the_shard_of_its_page(operator, jobs):  # noqa: F811
    assert operator.post(f"{OVERVIEW}default/pause/", headers=IN_1).status_code == 302
    assert [is_paused(0), is_paused(1)] == [False, True]

    refused = operator.post(f"{OVERVIEW}default/pause/")
    assert refused.status_code == 400
    assert "Nothing was changed" in refused.content.decode()
    assert [is_paused(0), is_paused(1)] == [False, True]


def test_a_shard_that_is_away_is_said_and_the_others_are_a_click_away(operator, servers, clients):  # noqa: F811
    with override_settings(RTQ={"SHARDS": {0: servers[0].url, 1: UNREACHABLE}}):
        answer = operator.get(OVERVIEW, {"shard": "1"})
        text = answer.content.decode()
        assert answer.status_code == 503
        assert "Redis is not responding" in text
        assert 'aria-current="true">Shard 1<' in text
        assert operator.get(OVERVIEW, {"shard": "0"}).status_code == 200
        close_brokers()


def test_a_job_of_a_bulk_action_is_in_the_shard_that_it_is_about(shards):
    sweep = Sweep(selection=Selection(queues=("default",), states=("queued",)), verb="cancel")
    for number in (0, 1):
        with view_backend(shard_place(number)):
            (job,) = enqueue_rest(sweep, ["default"])
        assert shard_in(job.id) == number
        assert job.state == "queued"
    assert [waiting(client) for client in shards] == [1, 1]
