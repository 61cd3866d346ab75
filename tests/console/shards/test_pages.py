"""Pages are about all shards, or about the one that is chosen, from page to page."""

import re

import pytest
from django.contrib.messages import get_messages

from django_rtq import rtq
from django_rtq.console.acting.actions import act
from django_rtq.console.incidents.watcher import IncidentWatcher
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.sweep import Sweep
from django_rtq.core.broker.brokers import close_brokers, get_broker, open_broker, substitute_broker
from django_rtq.core.broker.task_backends import shard_place
from django_rtq.core.jobs.job import shard_in
from django_rtq.testing import drain
from tests.app import tasks
from tests.console.admin.conftest import operator, person  # noqa: F401
from tests.console.incidents.test_watcher import told  # noqa: F401
from tests.scale.shards.conftest import client_of, waiting
from tests.support.jobs import new_job
from tests.support.redis_server import UNREACHABLE
from tests.support.shard_servers import on_servers

OVERVIEW = "/admin/django_rtq/queue/"
IN_1 = {"Referer": f"http://testserver{OVERVIEW}?shard=1"}
IN_ALL = {"Referer": f"http://testserver{OVERVIEW}"}


@pytest.fixture
def jobs(shards):
    return [tasks.note.using(client=client_of(shard)).delay("x") for shard in (0, 1)]


def is_paused(number):
    return readers_of(shard_place(number)).overview.read().queues[0].details.paused


def test_a_page_is_about_the_shard_of_its_address(operator, jobs):  # noqa: F811
    text = operator.get(f"{OVERVIEW}default/", {"shard": "1"}).content.decode()

    assert client_of(1) in text
    assert client_of(0) not in text
    assert 'href="/admin/django_rtq/queue/default/?shard=0"' in text
    assert 'aria-current="true">Shard 1<' in text
    assert client_of(0) in operator.get(f"{OVERVIEW}default/", {"shard": "0"}).content.decode()


def test_a_link_leads_to_the_same_shard(operator, jobs):  # noqa: F811
    answer = operator.get(f"{OVERVIEW}default/?state=queued", headers=IN_1)

    assert (answer.status_code, answer["Location"]) == (302, f"{OVERVIEW}default/?state=queued&shard=1")
    assert operator.get(f"{OVERVIEW}?shard=0", headers=IN_1).status_code == 200


def test_a_job_is_found_in_its_shard(operator, jobs):  # noqa: F811
    for job in jobs:
        assert operator.get(f"/admin/django_rtq/job/{job.id}/", follow=True).status_code == 200
        assert job.id in operator.get("/admin/django_rtq/job/search/", {"q": job.id}).headers["Location"]


def test_an_action_is_for_the_shard_of_its_page(operator, jobs):  # noqa: F811
    assert operator.post(f"{OVERVIEW}default/pause/", headers=IN_1).status_code == 302
    assert [is_paused(0), is_paused(1)] == [False, True]

    refused = operator.post(f"{OVERVIEW}default/pause/")
    assert refused.status_code == 400
    assert "Nothing was changed" in refused.content.decode()
    assert [is_paused(0), is_paused(1)] == [False, True]

    assert operator.post(f"{OVERVIEW}default/pause/", headers=IN_ALL).status_code == 302
    assert [is_paused(0), is_paused(1)] == [True, True]


@pytest.mark.parametrize("headers", [{}, IN_1, IN_ALL])
def test_an_action_on_one_job_is_for_its_shard(operator, jobs, servers, headers):  # noqa: F811
    given = {"q": "queue:default state:queued", "id": jobs[0].id, "until_ms": 10**15}

    with on_servers([servers[0].url, UNREACHABLE]):
        answer = operator.post("/admin/django_rtq/job/bulk/cancel/", given, headers=headers)

        assert [str(each) for each in get_messages(answer.wsgi_request)] == ["1 job was cancelled."]


def figures(answer):
    """The totals of an overview, by their titles."""
    return {total["title"]: total["text"] for total in answer.context["totals"]}


def row_of(text, queue="default"):
    """The figures in the row of a queue."""
    row = re.search(rf">{queue}</a>.*?</tr>", text, re.DOTALL)[0]
    return re.findall(r"<td[^>]*>(?:<a [^>]*>)?([\d.,]+)<", row)


def test_the_overview_adds_up_all_shards(operator, jobs, journal):  # noqa: F811
    tasks.note.using(client=client_of(1)).delay("y")
    tasks.note.using(client=client_of(0), queue_name="rare", run_after=60).delay("y")
    with substitute_broker(get_broker(shard_place(1))):
        drain()

    answer = operator.get(OVERVIEW)
    text = answer.content.decode()

    assert answer.status_code == 200
    assert (figures(answer)["Queued"], figures(answer)["Scheduled"]) == ("1", "1")
    assert row_of(text)[0] == "1"
    assert row_of(text, "rare")[:2] == ["0", "1"]
    assert 'href="/admin/django_rtq/queue/?shard=all" aria-current="true">All shards<' in text
    assert "Shards 0, 1</span>" in text  # no worker serves it
    assert all(queue.last_hour for queue in answer.context["found"].rows)
    for span in ("24h", "7d"):
        assert operator.get(OVERVIEW, {"span": span}).status_code == 200


def test_from_a_shard_back_to_all(operator, jobs):  # noqa: F811
    assert operator.get(OVERVIEW, headers=IN_1).status_code == 302
    assert 'aria-current="true">All shards<' in operator.get(OVERVIEW, {"shard": "all"}, headers=IN_1).content.decode()
    text = operator.get(f"{OVERVIEW}default/", {"shard": "all"}, headers=IN_1).content.decode()
    assert client_of(0) in text
    assert client_of(1) in text


def test_a_queue_is_resumed_where_it_is_paused(operator, jobs):  # noqa: F811
    rtq.at("#1").queues["default"].pause()
    text = operator.get(OVERVIEW).content.decode()
    action, _of_the_row = re.findall(r'action="([^"]*resume[^"]*)"', text)

    assert "Shard 1</span>" in text
    assert operator.post(action.replace("&amp;", "&")).status_code == 302
    assert not is_paused(1)


def test_nothing_is_said_of_selected_jobs_in_a_shard_that_does_not_answer(operator, servers, clients):  # noqa: F811
    with on_servers([server.url for server in servers]):
        ids = [tasks.note.using(client=client_of(shard)).delay("x").id for shard in (0, 1)]
        close_brokers()
    with on_servers([servers[0].url, UNREACHABLE]):
        form = {"q": "queue:default state:queued", "until_ms": 10**15, "id": ids, "next": OVERVIEW}
        answer = operator.post("/admin/django_rtq/job/bulk/cancel/", form, follow=True, headers=IN_ALL)
        close_brokers()

    assert [str(message) for message in answer.context["messages"]] == [
        "1 job was cancelled.",
        "Shard 1 does not answer. What you asked for was not done there, or only in part.",
    ]


def test_schedulers_notice_that_the_next_shard_does_not_answer(servers, clients, told):  # noqa: F811
    for second in (UNREACHABLE, servers[1].url):
        with on_servers([servers[0].url, second]):
            look(0)
            close_brokers()

    (incident,) = [each for what, each in told if (what, each.kind) == ("opened", "shard_unreachable")]
    assert (incident.shard, incident.is_critical) == ("1", True)
    assert "Shard 1 does not answer." in incident.text
    assert "Redis cannot be reached" in incident.text
    assert incident.id in [each.id for what, each in told if what == "closed"]


def look(number):
    """What schedulers of a shard do twice, some time apart."""
    broker = open_broker(shard_place(number), role="scheduler")
    watcher = IncidentWatcher(broker)
    for _ in range(2):
        key = broker.keys.of("default").incidents
        view = broker.redis.execute_one(("HGET", key, ""))
        if view:
            seen_ms, _, rest = view.partition(b" ")
            broker.redis.execute_one(("HSET", key, "", b"%d %s" % (int(seen_ms) - 20_000, rest)))
        watcher.tick()
    broker.close()


def test_a_job_of_a_bulk_action_is_in_the_shard_that_it_is_about(shards):
    sweep = Sweep(selection=Selection(queues=("default",), states=("queued",)), verb="cancel")
    for number in (0, 1):
        get_broker(shard_place(number)).enqueue("default", [new_job(), new_job()])
        (job,) = act(rtq.at(f"#{number}"), sweep, seconds=0, limit=1).rest
        assert shard_in(job.id) == number
        assert job.state == "queued"
    assert [waiting(client) for client in shards] == [2, 2]  # with one of the two
