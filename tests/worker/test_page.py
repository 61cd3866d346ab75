"""The page of memory between a child and its supervisor."""

import math
import os
from contextlib import suppress

import pytest

from django_rtq.worker import page as pages
from django_rtq.worker.page import (
    ACKED,
    BURIED,
    CANCELLED,
    EXPIRED,
    LONGEST_ID,
    LONGEST_NAME,
    MOST_AT_ONCE,
    RETRIED,
    TEXTS,
    Finished,
    Mark,
    Page,
)

ID = b"01a1fa94eeb97e2fb167e897ae5634a7"
IDS = [b"%032x" % number for number in range(5)]


def names(job_ids):
    return [job_id.decode() for job_id in job_ids]


def acked(job_id, text, ms=1):
    return Finished(job_id, ACKED, ms, True, 0, text)


def running(slots=1, job_id=ID):
    """A page with one job that runs, and its entry."""
    page = Page(slots)
    entry = 0
    if slots == 1:
        page.begin([job_id])
    else:
        entry = page.enter(job_id)
    assert page.start(entry)
    return page, entry


def test_a_new_page_tells_nothing():
    page = Page(3)

    assert (page.worker, page.notes(), page.started(), page.overdue(1e9)) == ("", (0, 0.0), [], [])
    assert (page.finished(), page.waiting(), page.taken, page.alive_at) == ([], [], Mark.NOTHING, 0.0)


@pytest.mark.parametrize("name", ["w", "host:123:abcdef01", "x" * LONGEST_NAME])
def test_the_name_is_that_of_the_last_signature(name):
    page = Page(1)
    page.sign("somebody-before-with-a-long-name")
    page.sign(name)

    assert page.worker == name
    assert page.notes() == (0, 0.0)


def test_the_jobs_of_a_claim_wait_then_run_then_are_over():
    page = Page(1)
    page.begin(IDS)
    assert page.waiting() == names(IDS)
    assert page.started() == []

    page.start(0)
    page.finish(0, ACKED, 7, b"zero")
    page.start(1)

    assert page.started() == names(IDS[1:2])
    assert page.waiting() == names(IDS[2:])
    assert page.finished() == [acked(IDS[0], b"zero", ms=7)]


def test_the_jobs_of_the_next_claim_take_the_place_of_those_before():
    page = Page(1)
    page.begin(IDS)
    for entry in range(5):
        page.start(entry)
        page.finish(entry, ACKED, 1, b"x" * 100)
    page.begin([b"another"])

    assert page.finished() == []
    assert page.waiting() == ["another"]
    assert page.start(0)
    assert page.started() == ["another"]


def test_ids_of_any_length_are_found_again():
    ids = [b"a", b"x" * LONGEST_ID, b"", b"\xff", b"bc  "]
    page = Page(1)
    page.begin(ids)
    for entry in range(5):
        page.start(entry)
        page.finish(entry, ACKED, 1)

    assert [job.job_id for job in page.finished()] == ids


@pytest.mark.parametrize("slots", [1, 2])
def test_an_id_that_is_too_long_does_no_harm(slots):
    page, entry = running(slots, b"x" * (LONGEST_ID + 1))

    assert page.started() == page.waiting() == []
    page.finish(entry, ACKED, 1)
    assert page.finished() == [acked(b"", b"")]


def test_as_many_jobs_as_one_claim_brings_have_room():
    page = Page(1)
    ids = [b"%03d" % number + b"x" * (LONGEST_ID - 3) for number in range(MOST_AT_ONCE)]
    page.begin(ids)
    for entry in range(MOST_AT_ONCE):
        page.start(entry)
        page.note_once(entry)
        page.limit(entry + 1.0, entry)

    assert page.started() == page.started_once() == names(ids)
    assert page.overdue(2.0) == names(ids[:2])


@pytest.mark.parametrize("verb", [RETRIED, BURIED, EXPIRED, CANCELLED])
def test_every_outcome_is_read_as_it_was_written(verb):
    page, entry = running()
    page.finish(entry, verb, 10**12, b"text", is_counted=False, attempt=3)

    assert page.finished() == [Finished(ID, verb, 10**12, False, 3, b"text")]
    assert page.started() == []


def test_entries_of_slots_do_not_overlap():
    page = Page(3)
    entries = [page.enter(letter * LONGEST_ID) for letter in (b"a", b"b", b"c")]
    for deadline, entry in enumerate(entries):
        page.start(entry)
        page.note_once(entry)
        page.limit(deadline + 1.0, entry)
    page.finish(entries[1], ACKED, 5, b"done")

    assert page.started() == page.started_once() == ["a" * LONGEST_ID, "c" * LONGEST_ID]
    assert page.overdue(1.0) == ["a" * LONGEST_ID]
    assert page.finished() == [acked(b"b" * LONGEST_ID, b"done", ms=5)]


def test_what_is_over_is_kept_until_it_was_told_though_its_slot_is_taken_again():
    page = Page(2)
    for round_number in range(50):
        entries = [page.enter(b"%d" % slot) for slot in range(2)]
        for entry in entries:
            page.start(entry)
            page.finish(entry, ACKED, 1, b"x" * 50_000)
        over = page.hand_over()
        later = page.enter(b"later")
        page.start(later)
        page.finish(later, ACKED, 1, b"y" * 50_000)
        if round_number % 5 == 0:  # an answer got lost
            page.not_told(over)
            over = page.hand_over()
        kept = {job.job_id: set(job.text) for job in page.finished()}
        assert kept == {b"0": set(b"x"), b"1": set(b"x"), b"later": set(b"y")}
        page.told(over)
        page.told(page.hand_over())
        assert page.finished() == []


def test_texts_that_are_on_their_way_are_not_written_over():
    page = Page(2)
    expected = {}
    for number in range(200):
        entry = page.enter(b"%d" % number)
        page.start(entry)
        text = b"%d" % number * 30_000
        assert page.finish(entry, ACKED, 1, text)
        expected[b"%d" % number] = text
        over = page.hand_over()
        assert {job.job_id: job.text for job in page.finished()} == expected
        if number % 2:
            page.told(over)
            expected.clear()
        else:
            page.not_told(over)


def test_a_text_without_room_is_refused_and_the_job_still_runs_but_short_ones_have_room():
    page = Page(1)
    page.begin(IDS)
    for entry in range(5):
        page.start(entry)
    assert not page.finish(0, ACKED, 1, b"x" * TEXTS)
    assert page.finish(0, ACKED, 1, b"x" * (TEXTS - 100_000))
    assert not page.finish(1, ACKED, 1, b"x" * 50_000)
    assert page.started() == names(IDS[1:])
    assert page.finish(1, ACKED, 1, b"short" * 10)

    assert [len(job.text) for job in page.finished()] == [TEXTS - 100_000, 50]


def test_when_nothing_has_room_an_empty_text_has():
    page = Page(1)
    page.begin([b"%d" % number for number in range(MOST_AT_ONCE)])
    answers = []
    for entry in range(MOST_AT_ONCE):
        page.start(entry)
        answers.append(page.finish(entry, ACKED, 1, b"x" * 20_000) or page.finish(entry, ACKED, 1, b"y" * 1_900))
        answers[-1] = answers[-1] or page.finish(entry, ACKED, 1)

    assert answers == [True] * MOST_AT_ONCE
    assert {len(job.text) for job in page.finished()} == {20_000, 1_900, 0}


def test_a_job_is_overdue_from_its_deadline_on():
    page, entry = running()
    page.limit(100.0, entry)

    assert page.overdue(99.9) == []
    assert page.overdue(100.0) == [ID.decode()]
    page.finish(entry, ACKED, 1)
    assert page.overdue(100.0) == []


@pytest.mark.parametrize("slots", [1, 2])
def test_neither_a_deadline_nor_a_mark_is_passed_on_to_the_next_job(slots):
    page, entry = running(slots)
    page.limit(100.0, entry)
    page.note_once(entry)
    page.finish(entry, ACKED, 1)
    if slots == 1:
        page.begin([b"another"])
    else:
        page.told(page.hand_over())
        assert page.enter(b"another") == entry
    page.start(entry)

    assert page.started() == ["another"]
    assert page.overdue(1e9) == []
    assert page.started_once() == []


def test_the_parent_reads_what_the_child_wrote():
    page = Page(1)
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


def test_whatever_moment_a_child_is_killed_at_what_it_wrote_makes_sense(monkeypatch):
    """Each write of the child but the first so many gets lost: what it had written by then has to be true."""

    class Torn(Exception):
        pass

    class Memory(bytearray):
        left = 10**9

        def __setitem__(self, place, value):
            Memory.left -= 1
            if Memory.left < 0:
                raise Torn
            super().__setitem__(place, value)

        def __getitem__(self, place):
            found = super().__getitem__(place)
            return bytes(found) if isinstance(place, slice) else found

    class Packed:
        def __init__(self, form):
            self.size, self.unpack_from, self._form = form.size, form.unpack_from, form

        def pack_into(self, memory, place, *values):
            memory[place : place + self.size] = self._form.pack(*values)

    for name in ("_NOTES", "_TIME", "_COUNT", "_OUTCOME"):
        monkeypatch.setattr(pages, name, Packed(getattr(pages, name)))
    monkeypatch.setattr(pages.mmap, "mmap", lambda fd, size: Memory(min(size, 400_000)))

    def live(page):
        for ids in (IDS, [b"x", b"yz"]):
            page.begin(ids)
            for entry, job_id in enumerate(ids):
                page.start(entry)
                page.limit(5.0, entry)
                page.finish(entry, RETRIED, 3, b"text of " + job_id, is_counted=True, attempt=2)

    known = {*IDS, b"x", b"yz"}
    for writes in range(100):
        Memory.left = 10**9
        page = Page(1)
        Memory.left = writes
        with suppress(Torn):
            live(page)
        for job in page.finished():
            assert job == Finished(job.job_id, RETRIED, 3, True, 2, b"text of " + job.job_id)
            assert job.job_id in known
        assert len(page.started()) <= 1
        assert {*page.started(), *page.waiting()} <= set(names(known))


# -- wishes of the supervisor


def test_a_job_is_asked_to_stop_where_it_runs():
    page = Page(3)
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
    page = Page(2)
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
    page = Page(1)
    said = [page.is_quiet]
    for is_quiet in (True, False):
        page.is_quiet = is_quiet
        said.append(page.is_quiet)

    assert said == [False, True, False]


# -- what the supervisor takes away


def test_of_a_claim_whose_rest_was_taken_nothing_more_starts_but_of_the_next_one():
    page = Page(1)
    page.begin(IDS)
    page.start(0)
    page.take(Mark.REST, page.number)

    assert page.taken is Mark.REST
    assert not page.start(1)
    assert page.started() == names(IDS[:1])
    page.begin(IDS)
    assert page.taken is Mark.NOTHING
    assert page.is_marked
    assert page.start(0)


@pytest.mark.parametrize("slots", [1, 2])
def test_who_was_given_up_starts_nothing_until_it_has_another_name(slots):
    page = Page(slots)
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
    page = Page(1)
    page.begin(IDS)
    page.take(Mark.ALL, page.number)
    page.take(Mark.NOTHING)

    assert not page.is_marked
    assert page.start(0)


def test_whether_redis_has_back_what_was_given_back_is_known_until_the_next_claim():
    page = Page(1)
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


def test_the_last_sign_of_life_counts_and_who_leaves_needs_none():
    page = Page(1)
    seen = []
    for now in (1.0, 2.0, math.inf, 3.0):
        page.live(now)
        seen.append(page.alive_at)
    page.note(jobs_done=1, claimed_at=5.0)

    assert seen == [1.0, 2.0, math.inf, math.inf]
