"""Pages of all shards: their lists are merged, their actions are done in each shard, and a silent shard is named."""

import json
import re
import threading
from html import unescape
from itertools import count

import pytest

from django_rtq import JobNotFound, rtq
from django_rtq.console import shards
from django_rtq.console.admin.pages import bulk as bulk_pages
from django_rtq.console.reading.jobs.walk import WrongCursor, encode_cursor
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.reading.selection import Selection
from django_rtq.console.shards import AllShards, read_places, write_places
from django_rtq.core.broker.brokers import close_brokers, get_broker
from django_rtq.core.broker.task_backends import shard_place
from django_rtq.core.jobs.job import new_job_id, with_shard
from testproject.redis_server import PrivateRedis
from tests.console.admin.conftest import body, operator, person  # noqa: F401
from tests.scale.shards.conftest import client_of
from tests.support.jobs import claimed_jobs, let_lapse, new_job, read_all, settle
from tests.support.redis_server import UNREACHABLE, Redis
from tests.support.shard_servers import on_servers
from tests.support.waiting import start_thread, wait_until

RTQ = "/admin/django_rtq/"
QUEUE = f"{RTQ}queue/default/"
IN_ALL = {"Referer": f"http://testserver{RTQ}queue/"}
ERROR = '{"error_class":"builtins.ValueError","error":"it broke"}\n'
NOTE = "tests.app.tasks.note"
_minute = count(1)


@pytest.fixture(scope="module")
def places(servers):
    """The servers of three shards."""
    with PrivateRedis() as third:
        yield [*servers, third]


@pytest.fixture
def three(places):
    """A project with three shards."""
    for place in places:
        place.start()
        with Redis.from_url(place.url, protocol=2) as client:
            client.flushall()
    with on_servers([place.url for place in places]):
        yield
        close_brokers()


def broker_of(shard):
    return get_broker(shard_place(shard))


def jobs_of(shard, number=1, *, client="", **options):
    """Jobs that are not enqueued yet."""
    made = [new_job(client=client, body=body("x", task=NOTE), **options) for _ in range(number)]
    return [job._replace(id=with_shard(new_job_id(), shard)) for job in made]


def queued(shard, number=1, **options):
    jobs = jobs_of(shard, number, **options)
    assert broker_of(shard).enqueue("default", jobs) == ["ok"] * number
    return ids(jobs)


def scheduled(shard, number=1):
    return [job_id for _ in range(number) for job_id in queued(shard, due=f"+{next(_minute) * 60_000}")]


def running(shard, number=1, *, worker=None):
    name = worker or f"w-{shard}"
    jobs = [job for _ in range(number) for job in claimed_jobs(broker_of(shard), *jobs_of(shard), worker=name)]
    return ids(jobs)


def settled(verb, shard, number=1):
    jobs = []
    for job in jobs_of(shard, number):
        claimed_jobs(broker_of(shard), job, worker="gone")
        settle(broker_of(shard), verb, job, worker="gone", outcome=json.dumps({"state": "succeeded", "task": NOTE}))
        if verb == "bury":
            keys = broker_of(shard).keys.of("default")
            broker_of(shard).redis.execute_one(("HSET", keys.errors, job.id, ERROR))
        jobs.append(job)
    return ids(jobs)


def dead(shard, number=1):
    return settled("bury", shard, number)


def finished(shard, number=1):
    return settled("ack", shard, number)


def retrying(shard, number=1):
    return settled("retry", shard, number)


def ids(jobs):
    return [job.id for job in jobs]


# -- lists


@pytest.mark.parametrize("make", [queued, scheduled, running, dead, finished, retrying])
@pytest.mark.parametrize("sizes", [(23, 2, 0), (0, 1, 11), (5, 5, 5)])
def test_no_job_is_missing_or_twice_on_the_pages_of_uneven_shards(three, make, sizes):
    made = [job_id for shard, size in enumerate(sizes) for job_id in make(shard, size)]

    for wanted in (Selection(), Selection(task=NOTE)):
        readers = AllShards()

        def read(cursor, readers=readers, wanted=wanted):
            assert getattr(readers.queue("default").details, make.__name__) == sum(sizes)
            return readers.search([("default", make.__name__)], wanted).page(cursor, limit=4)

        pages, seen = read_all(read)
        assert sorted(seen) == sorted(made)
        assert [len(page.jobs) for page in pages[:-1]] == [4] * (len(pages) - 1)
        assert {job.id: job.shard for page in pages for job in page.jobs} == {
            job_id: int(job_id[17:20], 16) if job_id[12] == "8" else 0 for job_id in made
        }


def test_a_list_of_all_shards_goes_on_behind_a_cursor(three):
    made = [job_id for make in (running, dead, retrying, queued) for shard in range(3) for job_id in make(shard, 2)]
    lists = [("default", state) for state in ("running", "retrying", "queued", "scheduled", "dead")]
    readers, seen, cursor = AllShards(), [], ""

    for _ in made:
        job, behind = next(readers.search(lists).each(cursor))
        seen.append(job.id)
        cursor = behind()

    assert sorted(seen) == sorted(made)
    assert list(readers.search(lists).each(cursor)) == []
    with pytest.raises(WrongCursor):
        next(readers.search(lists).each("x"))
    with pytest.raises(WrongCursor):
        next(readers.search(lists[:1]).each(cursor))


@pytest.mark.parametrize(
    ("make", "moment", "newest_first"),
    [
        (scheduled, "due_at", False),
        (running, "claimed_at", False),
        (dead, "died_at", True),
        (retrying, "due_at", False),
    ],
)
def test_a_list_is_in_its_order_over_all_shards(three, make, moment, newest_first):
    for shard in (2, 0, 1, 0, 2, 2, 1, 0):
        make(shard)

    readers = AllShards()
    pages, _ = read_all(lambda cursor: readers.search([("default", make.__name__)]).page(cursor=cursor, limit=3))

    jobs = [job for page in pages for job in page.jobs]
    moments = [getattr(job, moment) for job in jobs]
    assert [(job.id, job.shard) for job, _ in readers.search([("default", make.__name__)]).each()] == [
        (job.id, job.shard) for job in jobs
    ]
    assert len(moments) == 8
    assert moments == sorted(moments, reverse=newest_first)


def test_queued_jobs_come_in_turn_by_shard_and_the_urgent_ones_first(three):
    queued(0, 3), queued(1, 3), queued(2, 1, priority=5)

    readers = AllShards()
    page = readers.search([("default", "queued")]).page(limit=5)

    assert [job.shard for job in page.jobs] == [2, 0, 1, 0, 1]


def test_a_job_that_comes_or_goes_between_two_pages_shifts_nothing(three):
    made = [*dead(0, 6), *dead(1, 6)]

    readers = AllShards()
    first = readers.search([("default", "dead")]).page(limit=5)
    later = dead(1)
    readers_of(shard_place(0)).actions.done("discard", "default", [job.id for job in first.jobs])
    _, rest = read_all(
        lambda cursor: readers.search([("default", "dead")]).page(cursor=cursor or first.next_cursor, limit=5)
    )

    assert sorted([*ids(first.jobs), *rest]) == sorted(made)
    assert later[0] not in rest


def test_a_shard_that_is_silent_for_one_page_goes_on_where_it_was(three, places):
    made = [*dead(0, 4), *dead(1, 4)]

    def read(cursor):
        readers = AllShards()
        return readers.search([("default", "dead")]).page(cursor=cursor, limit=2)

    first = read("")
    places[1].pause()
    try:
        second = read(first.next_cursor)
    finally:
        places[1].resume()
    wait_until_nobody_asks()
    _, rest = read_all(lambda cursor: read(cursor or second.next_cursor))

    assert {job.shard for job in second.jobs} == {0}
    assert sorted([*ids(first.jobs), *ids(second.jobs), *rest]) == sorted(made)


def wait_until_nobody_asks():
    wait_until(lambda: not any(thread.name.startswith("rtq-shard-") for thread in threading.enumerate()))


def test_a_cursor_of_many_shards_fits_into_a_url_and_others_are_the_beginning():
    places = {number: "" for number in range(64)}
    made = {number: merged_cursor(number) for number in places}
    cursor = write_places(made)

    assert read_places(cursor) == made
    assert len(cursor) < 4000
    for wrong in ("", "x", "AAAA", write_places({}), "eJw", cursor[:50]):
        assert read_places(wrong) == {}


def merged_cursor(number):
    return encode_cursor([1_764_150_000_000.0 + 977 * number, with_shard(new_job_id(), number)])


def rows_of(answer):
    """Id, shard and state of each job that a search has found."""
    cells = r'/job/([^/]+)/\?.*?data-rtq-label="Shard">(\w*)<.*?rtq-state-(\w+)'
    return [found for table in answer.context["tables"] for found in re.findall(cells, table["rows"])]


@pytest.mark.parametrize("number", [0, 30])
def test_the_search_finds_jobs_of_all_shards(operator, three, number):  # noqa: F811
    made = [*running(1), *dead(0, 1 + number), *queued(1, 2), *scheduled(2)]

    seen, url = [], f"{RTQ}job/search/?q=task:{NOTE}"
    while url:
        answer = operator.get(url)
        jobs = rows_of(answer)
        seen += [job_id for job_id, *_ in jobs]
        assert all(shard.isdigit() for _, shard, _ in jobs)
        url = answer.context["next_url"]

    assert sorted(seen) == sorted(made)
    assert f"{len(made)} of {len(made)} jobs" in answer.context["range_text"]
    states = [state for *_, state in rows_of(operator.get(f"{RTQ}job/search/?q=task:{NOTE}"))]
    assert states == sorted(states, key=["running", "dead", "retrying", "queued", "scheduled"].index)


def test_a_queue_that_one_shard_has_can_be_searched(operator, three):  # noqa: F811
    broker_of(2).enqueue("rare", jobs_of(2))

    assert len(rows_of(operator.get(f"{RTQ}job/search/?q=queue:rare"))) == 1
    assert "no queue of this name" in operator.get(f"{RTQ}job/search/?q=queue:rear").content.decode()


def test_dead_letters_of_one_error_are_one_group(operator, three):  # noqa: F811
    dead(0, 2), dead(2, 3)

    answer = operator.get(f"{RTQ}deadletter/")
    (table,) = answer.context["tables"]

    assert table["rows"].count("<tr>") == 1
    assert all(f">{text}<" in table["rows"] for text in ("5", "0, 2", "it broke"))


def test_a_job_of_another_shard_is_not_in_shard_0(three):
    (job_id,) = running(1)

    assert rtq.job(job_id).details().id == job_id
    with pytest.raises(JobNotFound):
        rtq.at("#0").job(job_id).details()


def test_tasks_and_clients_of_all_shards(operator, three):  # noqa: F811
    shops = {shard: client_of(shard, (0, 1, 2)) for shard in range(3)}
    for shard, shop in shops.items():
        queued(shard, shard + 1, client=shop)

    rows = operator.get(f"{RTQ}client/").context["found"].rows
    assert {row.client: (row.queued, list(row.shards)) for row in rows} == {
        shop: (shard + 1, [shard]) for shard, shop in shops.items()
    }
    (table,) = operator.get(f"{RTQ}client/client/", {"client": shops[2]}).context["tables"]
    assert [cell in table["rows"] for cell in (">3</td>", ">2</td>")] == [True, True]
    clients = AllShards().clients.busiest("default")
    assert [(client.queued, client.shards) for client in clients] == [(3, (2,)), (2, (1,)), (1, (0,))]

    task = operator.get(f"{RTQ}registeredtask/{NOTE.replace('_', '_5F')}/")
    assert ">6</a>" in task.context["tables"][0]["rows"]
    assert operator.get(f"{RTQ}registeredtask/").status_code == 200


# -- actions


def test_selected_jobs_are_acted_on_in_their_shards(operator, three):  # noqa: F811
    made = [*dead(0, 2), *dead(1), *dead(2)]

    operator.post(f"{RTQ}job/bulk/requeue/", {"list": "queue:default state:dead", "id": made[1:]}, headers=IN_ALL)

    assert [readers_of(shard_place(shard)).queues.get("default").dead for shard in range(3)] == [1, 0, 0]


def test_a_limit_of_a_queue_is_divided_among_the_shards(operator, three):  # noqa: F811
    queued(0)
    page = f"{RTQ}queue/default/limits/"

    operator.post(page, {"max_running": "7", "rate": "30/s"}, headers=IN_ALL)

    limits = [readers_of(shard_place(n)).clients.limits("default").limits for n in range(3)]
    assert [(of["max_running"].value, of["rate"].value) for of in limits] == [(3, "30/3s"), (2, "30/3s"), (2, "30/3s")]
    shown = operator.get(page).content.decode()
    assert ('value="7"' in shown, 'value="30/s"' in shown) == (True, True)
    answer = operator.post(page, {"max_running": "2"}, headers=IN_ALL)
    assert "cannot be divided among 3 shards" in answer.content.decode()
    assert readers_of(shard_place(0)).clients.limits("default").limits["max_running"].value == 3


def test_the_rest_of_a_slow_action_is_done_by_a_job_in_each_shard(operator, three, monkeypatch):  # noqa: F811
    monkeypatch.setattr(bulk_pages, "STEP", 1)
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    dead(0, 2), dead(1, 2)
    url = f"{RTQ}job/bulk/requeue/"
    question = operator.get(url, {"q": f"queue:default state:dead task:{NOTE}"})

    answer = operator.post(url, dict(question.context["fields"]), headers=IN_ALL, follow=True)

    assert [readers_of(shard_place(n)).queues.get("default").queued for n in range(3)] == [2, 2, 0]
    links = re.findall(
        r'<a href="(/admin/django_rtq/job/[^"]+)">default</a>', answer.content.decode().split("do the rest")[1]
    )
    assert len(links) == 2
    assert all(operator.get(unescape(link)).status_code == 200 for link in links)


def test_a_worker_is_quieted_and_its_jobs_reclaimed_where_it_is(operator, three):  # noqa: F811
    running(2, worker="lost")
    let_lapse(broker_of(2), "lost")

    answer = operator.post(f"{RTQ}worker/lost/reclaim/", headers=IN_ALL, follow=True)
    assert "1 job of worker lost was reclaimed." in answer.content.decode()
    answer = operator.post(f"{RTQ}worker/nobody/quiet/", headers=IN_ALL, follow=True)
    assert "worker nobody is unknown" in answer.content.decode()


def test_a_queue_is_purged_in_all_shards_and_forgotten_if_none_keeps_it(operator, three):  # noqa: F811
    for shard in range(3):
        queued(shard, 2)

    assert "Purge 6 waiting jobs?" in operator.get(f"{RTQ}job/bulk/purge/?q=queue:default").content.decode()
    operator.post(f"{QUEUE}forget/", {"name": "default"}, headers=IN_ALL)
    assert readers_of(shard_place(1)).queues.names() == ["default"]
    operator.post(f"{RTQ}job/bulk/purge/", {"q": "queue:default", "until_ms": 1, "name": "default"}, headers=IN_ALL)
    rtq.at("#1").queues["default"].pause()
    answer = operator.post(f"{QUEUE}forget/", {"name": "default"}, headers=IN_ALL, follow=True)
    assert "it is paused" in answer.content.decode()
    rtq.at("#1").queues["default"].resume()
    operator.post(f"{QUEUE}forget/", {"name": "default"}, headers=IN_ALL)

    assert [readers_of(shard_place(n)).queues.names() for n in range(3)] == [[], [], []]


# -- shards that do not answer

PAGES = [
    *(
        "queue/",
        "queue/default/",
        "queue/default/?state=dead",
        "job/",
        "deadletter/",
        "client/",
        "worker/",
        "schedule/",
    ),
    *("registeredtask/", f"registeredtask/{NOTE}/", "client/client/?client=acme"),
    *("job/search/?q=x", "job/search/?q=queue:rare", "queue/rare/", "workflow/"),
    *("job/bulk/purge/?q=queue:default", "job/bulk/discard/?q=queue:default"),
]
WITHOUT_JOBS = ("log/", "workflow/")


def test_no_page_fails_while_one_shard_hangs_and_one_is_dead(operator, admin_client, three, places):  # noqa: F811
    for shard in range(3):
        dead(shard)
    places[1].pause()
    places[2].kill()
    try:
        for url in PAGES:
            answer = (admin_client if url == "schedule/" else operator).get(RTQ + url, follow=True)
            text = answer.content.decode()
            assert answer.status_code == 200, url
            if url == "queue/":
                assert "Shard 1 does not answer" in text
                assert "Shard 2 does not answer" in text
                assert "Redis cannot be reached" in text
            elif url not in WITHOUT_JOBS:
                assert re.search(r"Shard 1 has not answered since \d.*: its jobs are missing here", text), url
                assert re.search(r"Shard 2 has not answered since \d.*Redis cannot be reached", text, re.DOTALL), url
                assert not re.search("Nothing is known|No match|No worker (is running|serves)|no queue of", text), url
        answer = operator.post(f"{QUEUE}pause/", headers=IN_ALL, follow=True)
        assert "Shard 2 does not answer. What you asked for was not done there" in answer.content.decode()
        assert operator.get(QUEUE, {"shard": "1"}).status_code == 503
        assert operator.get(f"{RTQ}job/{with_shard(new_job_id(), 1)}/").status_code == 503
    finally:
        places[1].resume()
    wait_until_nobody_asks()
    assert readers_of(shard_place(0)).queues.get("default").paused
    assert not readers_of(shard_place(1)).queues.get("default").paused


def test_the_first_shard_may_hang_as_well(operator, admin_client, three, places, patient_clients):  # noqa: F811
    made = dead(1)[0]
    patient_clients.clear()
    places[0].pause()
    try:
        for url in PAGES:
            answer = (admin_client if url == "schedule/" else operator).get(RTQ + url, follow=True)
            assert answer.status_code == 200, url
        assert operator.get(f"{RTQ}job/{made}/").status_code == 200
        found = operator.get(f"{RTQ}job/search/", {"q": new_job_id()})
        assert "Shard 0 has not answered" in found.content.decode()
        for url in ("workflow/", "job/search/?q=workflow:month-end", "job/search/?q=workflow:0123456789ab"):
            answer = operator.get(RTQ + url)
            assert (answer.status_code, "Shard 0 has not answered" in answer.content.decode()) == (200, True), url
        for url in ("workflow/?shard=1", "workflow/0123456789ab/?shard=1", "workflow/0123456789ab/cancel/"):
            answer = operator.get(RTQ + url)
            assert answer.status_code == (200 if url == "workflow/?shard=1" else 503), url
        assert "Shard 0 does not answer." in answer.content.decode()
        assert broker_of(0).redis not in patient_clients
    finally:
        places[0].resume()
    wait_until_nobody_asks()


def test_a_silent_shard_may_have_queues(operator, servers, clients):  # noqa: F811
    with on_servers([servers[0].url, UNREACHABLE]):
        text = operator.get(f"{RTQ}queue/").content.decode()
        close_brokers()

    assert "Not all shards have answered." in text
    assert "No queue has been used" not in text


def test_if_no_shard_answers_it_is_an_error(operator, places):  # noqa: F811
    with on_servers([UNREACHABLE, UNREACHABLE.replace("/0", "/1")]):
        for page in (QUEUE, f"{RTQ}queue/"):
            answer = operator.get(page)
            assert (answer.status_code, "Redis cannot be reached" in answer.content.decode()) == (503, True)
        assert operator.post(f"{QUEUE}pause/", headers=IN_ALL).status_code == 503
        close_brokers()


def test_a_silent_shard_is_waited_for_once_in_a_request(three, places, monkeypatch):
    asked, ask = [], shards._shards.ask
    monkeypatch.setattr(
        shards._shards, "ask", lambda read, numbers, **how: asked.append(numbers) or ask(read, numbers, **how)
    )
    places[2].kill()

    readers = AllShards()
    readers.queues.names()
    readers.queues.details()

    assert asked == [[0, 1, 2], [0, 1]]
    assert list(readers.silent) == [2]


def test_two_viewers_at_once_both_get_the_answers(three):
    gate, answers = threading.Event(), []

    def slow(readers):
        gate.wait(10)
        return readers.place

    first = start_thread(lambda: answers.append(AllShards().every(slow)))
    wait_until(lambda: any(thread.name == "rtq-shard-2" for thread in threading.enumerate()))
    answers.append(AllShards().every(lambda readers: readers.place))
    gate.set()
    first.join()

    assert answers == [["", "#1", "#2"]] * 2


def test_one_redis_has_no_part_in_it(operator, broker, round_trips):  # noqa: F811
    broker.enqueue("default", [new_job()])
    round_trips.clear()

    text = operator.get(QUEUE).content.decode()

    assert len(round_trips) == 3
    assert "Shard" not in text
    assert "silent" not in text


def test_all_shards_are_one_place_and_each_is_one(three, places):
    dead(0, 2), dead(2, 3), queued(1, 4)

    assert rtq.jobs.count() == 9
    assert [rtq.at(place).jobs.count() for place in ("#0", "#1", "#2")] == [2, 4, 3]
    assert rtq.jobs.filter(state="dead").requeue() == 5
    assert rtq.queues["default"].details().queued == 9
    places[1].kill()
    with pytest.raises(Exception, match="Shard 1 does not answer"):
        rtq.jobs.count()


def test_only_pages_do_without_a_shard_that_takes_its_time(three, monkeypatch):
    dead(0), dead(1)
    monkeypatch.setattr(threading, "Thread", None)  # for an answer of which a page waits a second

    assert rtq.jobs.filter(task=NOTE).count() == 2
