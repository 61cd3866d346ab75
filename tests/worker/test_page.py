"""The page of memory between a child and its supervisor."""

import os

import pytest

from django_rtq.worker.page import LONGEST_ID, LONGEST_NAME, Page

ID = b"01a1fa94eeb97e2fb167e897ae5634a7"


def test_a_new_page_tells_nothing():
    page = Page(3)

    assert (page.worker, page.notes(), page.started(), page.overdue(1e9)) == ("", (0, 0.0), [], [])


@pytest.mark.parametrize("name", ["w", "host:123:abcdef01", "x" * LONGEST_NAME])
def test_the_name_is_that_of_the_last_signature(name):
    page = Page(1)
    page.sign("somebody-before-with-a-long-name")
    page.sign(name)

    assert page.worker == name
    assert page.notes() == (0, 0.0)


def test_what_was_started_and_is_not_finished_runs():
    page = Page(3)
    for slot in range(3):
        page.start(ID[:-1] + b"%d" % slot, slot)
    page.finish(1)

    assert page.started() == [ID[:-1].decode() + "0", ID[:-1].decode() + "2"]


def test_slots_do_not_overlap():
    page = Page(3)
    for slot, letter in enumerate("abc"):
        page.start(letter.encode() * LONGEST_ID, slot)
        page.note_once(slot)
        page.limit(slot + 1.0, slot)

    assert page.started() == [letter * LONGEST_ID for letter in "abc"]
    assert page.overdue(2.0) == ["a" * LONGEST_ID, "b" * LONGEST_ID]


def test_a_job_is_overdue_from_its_deadline_on():
    page = Page(1)
    page.start(ID)
    page.limit(100.0)

    assert page.overdue(99.9) == []
    assert page.overdue(100.0) == [ID.decode()]


def test_neither_a_deadline_nor_a_mark_is_passed_on_to_the_next_job():
    page = Page(1)
    page.start(ID)
    page.limit(100.0)
    page.note_once()
    page.finish()
    page.start(b"another")

    assert page.started() == ["another"]
    assert page.overdue(1e9) == []
    assert page.started_once() == []


def test_the_parent_reads_what_the_child_wrote():
    page = Page(1)
    if not (pid := os.fork()):
        page.sign("child")
        page.note(jobs_done=7, claimed_at=1.5)
        page.start(ID)
        page.note_once()
        os._exit(0)
    os.waitpid(pid, 0)

    assert (page.worker, page.notes(), page.started()) == ("child", (7, 1.5), [ID.decode()])
    assert page.started_once() == [ID.decode()]


def test_a_job_is_asked_to_stop_in_the_slot_where_it_runs():
    page = Page(3)
    page.start(ID, 1)
    page.ask_to_stop("other")
    assert page.to_stop() == []

    page.ask_to_stop(ID.decode())

    assert page.to_stop() == [ID]
    assert [page.is_to_stop(ID, slot) for slot in range(3)] == [False, True, False]
    assert page.started() == [ID.decode()]


def test_a_wish_that_comes_too_late_hits_nobody():
    page = Page(1)
    page.start(ID)
    page.ask_to_stop(ID.decode())
    page.finish()
    assert page.to_stop() == []

    page.start(b"next")

    assert page.to_stop() == []
    assert not page.is_to_stop(b"next")
    page.ask_to_stop("next")
    assert page.to_stop() == [b"next"]


def test_the_longest_id_fits_beside_all_else():
    page = Page(2)
    longest = b"x" * LONGEST_ID
    for slot in range(2):
        page.start(longest, slot)
        page.note_once(slot)
        page.limit(5.0, slot)
    page.ask_to_stop(longest.decode())

    assert page.to_stop() == [longest, longest]
    assert page.started_once() == page.overdue(6.0) == [longest.decode()] * 2


def test_quiet_is_a_wish_that_can_be_taken_back():
    page = Page(1)
    said = [page.is_quiet]
    for is_quiet in (True, False):
        page.is_quiet = is_quiet
        said.append(page.is_quiet)

    assert said == [False, True, False]
