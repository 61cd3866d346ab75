"""The page of memory between a child and its supervisor."""

import math
import os

import pytest

from django_rtq.worker.shared_entries import (
    ACKED,
    LONGEST_ID,
    Mark,
)
from django_rtq.worker.shared_memory import LONGEST_NAME, SharedState
from tests.worker.shared_states import ID, IDS, acked, names, running


def test_a_new_page_tells_nothing():
    page = SharedState(3)

    assert (page.worker, page.notes(), page.started(), page.overdue(1e9)) == ("", (0, 0.0), [], [])
    assert (page.finished(), page.waiting(), page.taken, page.alive_at) == ([], [], Mark.NOTHING, 0.0)


@pytest.mark.parametrize("name", ["w", "host:123:abcdef01", "x" * LONGEST_NAME])
def test_the_name_is_that_of_the_last_signature(name):
    page = SharedState(1)
    page.sign("somebody-before-with-a-long-name")
    page.sign(name)

    assert page.worker == name
    assert page.notes() == (0, 0.0)


def test_the_parent_reads_what_the_child_wrote():
    page = SharedState(1)
    if not (pid := os.fork()):
        page.sign("child")
        page.note(jobs_done=7, claimed_at=1.5)
        page.begin([ID, b"other"])
        page.start(0)
        page.finish(0, ACKED, 5, b"result")
        page.start(1)
        page.note_once(1)
        os._exit(0)
    os.waitpid(pid, 0)

    assert (page.worker, page.notes(), page.alive_at) == ("child", (7, 1.5), 1.5)
    assert page.started() == page.started_once() == ["other"]
    assert page.finished() == [acked(ID, b"result", ms=5)]


def test_the_last_sign_of_life_counts_and_who_leaves_needs_none():
    page = SharedState(1)
    seen = []
    for now in (1.0, 2.0, math.inf, 3.0):
        page.live(now)
        seen.append(page.alive_at)
    page.note(jobs_done=1, claimed_at=5.0)

    assert seen == [1.0, 2.0, math.inf, math.inf]


# -- wishes of the supervisor


def test_a_job_is_asked_to_stop_where_it_runs():
    page = SharedState(3)
    entries = [page.enter(job_id) for job_id in (b"a", ID, b"b")]
    for entry in entries:
        page.start(entry)
    page.ask_to_stop("other")
    assert page.to_stop() == []

    page.ask_to_stop(ID.decode())

    assert page.to_stop() == [ID]
    assert [page.is_to_stop(ID, entry) for entry in entries] == [False, True, False]
    assert sorted(page.started()) == sorted(["a", "b", ID.decode()])


def test_a_wish_that_comes_too_late_hits_nobody():
    page, entry = running()
    page.ask_to_stop(ID.decode())
    page.finish(entry, ACKED, 1)
    assert page.to_stop() == []

    page.begin([b"next"])
    page.start(0)

    assert page.to_stop() == []
    assert not page.is_to_stop(b"next", 0)
    page.ask_to_stop("next")
    assert page.to_stop() == [b"next"]


def test_a_wish_for_the_longest_id_fits_beside_all_else():
    page = SharedState(2)
    longest = [letter * LONGEST_ID for letter in (b"x", b"y")]
    for job_id in longest:
        entry = page.enter(job_id)
        page.start(entry)
        page.note_once(entry)
        page.limit(5.0, entry)
        page.ask_to_stop(job_id.decode())

    assert sorted(page.to_stop()) == longest
    assert sorted(page.started_once()) == sorted(page.overdue(6.0)) == names(longest)


def test_quiet_is_a_wish_that_can_be_taken_back():
    page = SharedState(1)
    said = [page.is_quiet]
    for is_quiet in (True, False):
        page.is_quiet = is_quiet
        said.append(page.is_quiet)

    assert said == [False, True, False]


# -- what the supervisor takes away


def test_of_a_claim_whose_rest_was_taken_nothing_more_starts_but_of_the_next_one():
    page = SharedState(1)
    page.begin(IDS)
    page.start(0)
    page.take(Mark.REST, page.number)

    assert page.taken is Mark.REST
    assert not page.start(1)
    assert page.started() == names(IDS[:1])
    page.take(Mark.REST, page.number)  # once more: it is not without a mark for a moment
    assert not page.start(1)
    page.begin(IDS)
    assert page.taken is Mark.NOTHING
    assert page.is_marked
    assert page.start(0)


@pytest.mark.parametrize("slots", [1, 2])
def test_who_was_given_up_starts_nothing_until_it_has_another_name(slots):
    page = SharedState(slots)
    page.sign("old")
    page.take(Mark.ALL, page.number)
    entry = 0
    if slots == 1:
        page.begin(IDS)
    else:
        entry = page.enter(ID)

    assert page.taken is Mark.ALL
    assert not page.start(entry)
    assert page.started() == []
    page.sign("new")
    assert page.taken is Mark.NOTHING
    assert running(slots)[0].started() == [ID.decode()]


def test_what_was_taken_can_be_given_back():
    page = SharedState(1)
    page.begin(IDS)
    page.take(Mark.ALL, page.number)
    page.take(Mark.NOTHING)

    assert not page.is_marked
    assert page.start(0)


def test_whether_redis_has_back_what_was_given_back_is_known_until_the_next_claim():
    page = SharedState(1)
    page.begin(IDS)
    page.start(0)
    page.start(1)
    page.give_back_from(2)

    assert page.waiting() == names(IDS[2:])
    assert page.started() == names(IDS[:2])
    assert not page.is_told
    page.note_told()
    assert page.is_told
    page.begin(IDS)
    assert not page.is_told
