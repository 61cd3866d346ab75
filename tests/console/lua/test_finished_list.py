"""Pages of jobs whose outcome is kept, what finished last first."""

import pytest

from django_rtq.console.reading.selection import Selection
from django_rtq.core.jobs.job import moment
from tests.support.jobs import QUEUE, claimed_jobs, new_job, settle
from tests.support.mutant import Mutant, mutated
from tests.support.single_steps import trim

FEW = Mutant("few", "lib/search_steps", "SEEN_DEPTH = 100000", "SEEN_DEPTH = 3")


@pytest.fixture
def jobs(broker):
    """Ten finished jobs; the last one finished last."""
    jobs = claimed_jobs(broker, *(new_job(f"{number}") for number in range(10)))
    for job in jobs:
        settle(broker, "ack", job)
    return jobs


def let_pass(redis, broker, *jobs):
    """As if these jobs had finished three minutes ago; then trim moves them."""
    for place, job in enumerate(jobs):
        finished_ms = (redis.time()[0] - 180) * 1000 + place
        redis.hset(broker.keys.of(QUEUE).results, job.id, f'{finished_ms} 3600000 "done"')
    trim(broker, QUEUE)


def pages(readers, limit, between=lambda: None):
    found, cursor = [], None
    while cursor != "":
        page = readers.search([(QUEUE, "finished")]).page(cursor=cursor or "", limit=limit)
        found.append([job.id for job in page.jobs])
        cursor = page.next_cursor
        between()
    return found


def in_pages(jobs, limit):
    ids = [job.id for job in reversed(jobs)]
    return [ids[start : start + limit] for start in range(0, len(ids), limit)]


@pytest.mark.parametrize("moved", [0, 1, 4, 6, 10])
@pytest.mark.parametrize("limit", [1, 3, 4, 5, 6, 10, 20])
def test_pages_go_on_where_the_last_one_ended_in_the_list_and_in_the_index(redis, broker, readers, jobs, moved, limit):
    let_pass(redis, broker, *jobs[:moved])

    assert pages(readers, limit) == in_pages(jobs, limit)


def test_a_page_tells_when_jobs_finished(redis, broker, readers, jobs):
    let_pass(redis, broker, *jobs[:5])
    now = redis.time()[0]

    found = readers.search([(QUEUE, "finished")]).page().jobs
    ages = [now - job.finished_at.timestamp() for job in found]

    assert ages == pytest.approx([0] * 5 + [180] * 5, abs=5)
    assert all(job.forgotten_at.timestamp() == pytest.approx(job.finished_at.timestamp() + 3600) for job in found)


def test_jobs_that_finish_meanwhile_shift_nothing(broker, readers, jobs):
    def finish():
        settle(broker, "ack", *claimed_jobs(broker, new_job("later")))

    assert pages(readers, 3, finish) == in_pages(jobs, 3)


def test_what_trim_moves_meanwhile_is_shown_once(redis, broker, readers, jobs):
    steps = iter((4, 8))

    def move():
        let_pass(redis, broker, *jobs[: next(steps, 10)])

    assert pages(readers, 3, move) == in_pages(jobs, 3)


def test_outcomes_that_are_dropped_meanwhile_end_the_list(redis, keys, readers, jobs):
    def drop():
        redis.hdel(keys.results, *(job.id for job in jobs[:8]))
        redis.ltrim(keys.recent_results, 8, -1)

    assert pages(readers, 3, drop) == [[jobs[9].id, jobs[8].id, jobs[7].id], []]


def test_an_outcome_that_expires_meanwhile_does_not_end_the_list(redis, broker, keys, readers, jobs):
    let_pass(redis, broker, *jobs)

    def expire():
        redis.zadd(keys.result_expiry, {jobs[7].id: 1})
        trim(broker, QUEUE)

    assert pages(readers, 3, expire) == in_pages(jobs, 3)


def test_an_id_without_an_outcome_is_passed_over(redis, broker, readers, jobs):
    redis.hdel(broker.keys.of(QUEUE).results, *(job.id for job in jobs[2:8]))

    assert [job_id for page in pages(readers, 2) for job_id in page] == [jobs[n].id for n in (9, 8, 1, 0)]


def test_a_search_for_the_last_page_has_a_limit(readers, jobs):
    first = readers.search([(QUEUE, "finished")]).page(limit=5)
    with mutated(FEW):
        second = readers.search([(QUEUE, "finished")]).page(cursor=first.next_cursor)

    assert (second.jobs, second.is_complete, second.next_cursor) == ([], False, "")


def test_many_are_searched_in_steps_of_a_hundred(redis, broker, readers):
    keys, now = broker.keys.of(QUEUE), redis.time()[0]
    texts = {
        f"job{n:03}": f'{(now - 300 + n) * 1000} 3600000 {{"state":"succeeded","task":"t{n % 2}"}}' for n in range(250)
    }
    redis.rpush(keys.recent_results, *texts)
    redis.hset(keys.results, mapping=texts)

    page = readers.search([(QUEUE, "finished")], filter=Selection(task="t1", since=moment((now - 200) * 1000))).page()

    assert [job.id for job in page.jobs] == [f"job{n:03}" for n in range(249, 150, -2)]
    assert (page.searched, page.next_cursor != "") == (99, True)
