"""Filters applied in Redis: they mean the same jobs as Selection does, and of the others next to nothing is sent."""

from datetime import datetime, timezone

import pytest

from django_rtq.console.reading.selection import Selection
from django_rtq.core.jobs import serializer
from tests.console.lua.test_dead_letters import bury
from tests.support import sweeps
from tests.support.jobs import QUEUE, claimed_jobs, dead_job, new_job, settle

TRACEBACK = "t" * 4000
PLAIN = serializer.dumps({"at": 1, "error_class": "a.NoStock", "error": "sold out", "traceback": TRACEBACK})
NAMES = ["shop.tasks.ship", "shop.tasks.reship", "ship", 'we"ird.ship', "tä\\sk.ship", "日本.ship", "", "x" * 200]


@pytest.fixture
def sent(redis):
    """How many bytes Redis has sent since the last call."""
    before = 0

    def since():
        nonlocal before
        now = redis.info("stats")["total_net_output_bytes"]
        before, bytes_sent = now, now - before
        return bytes_sent

    since()
    return since


@pytest.fixture
def graveyard(broker):
    """Buries so many at once."""

    def bury_many(number, line=PLAIN, task="shop.tasks.ship"):
        body = serializer.dumps({"task": task})
        for start in range(0, number, 500):
            jobs = claimed_jobs(broker, *(new_job(body=body) for _ in range(min(500, number - start))), worker="w9")
            settle(broker, "bury", *jobs, worker="w9", error=line)

    return bury_many


@pytest.mark.parametrize(
    "wanted",
    [
        *({"task": name} for name in (*NAMES, "=ship", "=p", "=")),
        *({"error_class": name} for name in (*NAMES, "NoStock", "a.NoStock")),
        *({"error": text} for text in ("late", 'quo"te', "back\\slash", "日本", "new\nline", "NoStock", "tttt", ".")),
        *({"client": name} for name in ("", "acme", "=", "acm")),
        {"task": "ship", "error_class": "NoStock", "client": "acme"},
        {"id": "0"},
        {"id": "x"},
        {"since": datetime(2020, 1, 1, tzinfo=timezone.utc)},
        {"before": datetime(2020, 1, 1, tzinfo=timezone.utc)},
    ],
    ids=str,
)
def test_the_same_jobs_are_meant_as_when_all_of_them_are_looked_at(wanted, redis, broker, readers):
    messages = ["too late", 'quo"te', "back\\slash", "日本", "new\nline", "", "\u202e", "x" * 900 + "late"]
    for number, name in enumerate(NAMES):
        bury(broker, name, name or "a.NoStock", messages[number], client="acme" if number % 2 else "")
    bury(broker, "shop.tasks.ship", "a.NoStock", client="acme")
    for field in ("jobs", "errors"):
        redis.hset(getattr(broker.keys.of(QUEUE), field), dead_job(broker).id, "nonsense")
    filter = Selection(**wanted)

    meant = [job.id for job in readers.search([(QUEUE, "dead")]).page(limit=500).jobs if filter.fits(job)]

    assert [job.id for job in readers.search([(QUEUE, "dead")], filter=filter).page().jobs] == meant
    selection = sweeps.count(readers, "discard", **wanted)
    assert selection.count == len(meant)
    (swept,) = sweeps.steps(readers, "discard", until_ms=selection.until_ms, **wanted)
    assert sorted(swept.done) == sorted(meant)


def test_a_list_in_which_nothing_fits_sends_little_more_than_the_ids(sent, broker, readers, graveyard):
    graveyard(2000)
    sent()

    page = readers.search([(QUEUE, "dead")], filter=Selection(error_class="NoSuchError")).page()

    assert (page.jobs, page.searched) == ([], 2000)
    assert sent() < 200_000


def test_a_list_in_which_all_fit_sends_one_page(sent, broker, readers, graveyard):
    graveyard(2000)
    sent()

    page = readers.search([(QUEUE, "dead")], filter=Selection(error_class="NoStock")).page(limit=25)

    assert len(page.jobs) == 25
    assert sent() < 25 * 5000 + 60_000


@pytest.mark.parametrize("task", ["ship", "nosuch"])
def test_to_count_those_that_fit_sends_numbers(task, sent, broker, readers, graveyard):
    graveyard(2000)
    sent()

    assert sweeps.count(readers, "discard", task=task).count == (2000 if task == "ship" else 0)

    assert sent() < 10_000
