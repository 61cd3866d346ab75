"""The entries of a page: what was claimed, and how far it is."""

from collections import Counter
from contextlib import suppress

import pytest

from django_rtq.worker import shared_entries as module
from django_rtq.worker.shared_entries import (
    ACKED,
    BURIED,
    CANCELLED,
    EXPIRED,
    LONGEST_ID,
    MOST_AT_ONCE,
    RETRIED,
    TEXTS,
    TOMBSTONE_MS,
    Finished,
)
from django_rtq.worker.shared_memory import SharedState
from tests.worker.shared_states import ID, IDS, acked, names, running


def test_the_jobs_of_a_claim_wait_then_run_then_are_over():
    page = SharedState(1)
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
    page = SharedState(1)
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
    page = SharedState(1)
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
    page = SharedState(1)
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
    page = SharedState(3)
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
    page = SharedState(2)
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
    page = SharedState(2)
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
    page = SharedState(1)
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
    page = SharedState(1)
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


def test_a_job_that_succeeded_and_of_which_nothing_is_kept_is_told_so_too():
    page, entry = running()
    page.finish_bare(entry)

    assert page.finished() == [acked(ID, b"", ms=TOMBSTONE_MS)]
    assert page.started() == []


class Torn(Exception):
    """The process was killed."""


class Memory(bytearray):
    """Of all that is written to it, only the first so many times."""

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
    """A struct that packs by such a write."""

    def __init__(self, form):
        self.size, self.unpack_from, self._form = form.size, form.unpack_from, form

    def pack_into(self, memory, place, *values):
        memory[place : place + self.size] = self._form.pack(*values)


@pytest.fixture
def written(monkeypatch):
    """A page of which only the first so many writes arrive."""
    for name in ("_TIME", "COUNT", "_OUTCOME", "_ACKED"):
        monkeypatch.setattr(module, name, Packed(getattr(module, name)))
    monkeypatch.setattr(module, "TEXTS", 2_000)
    monkeypatch.setattr(module, "_FULL", 1_000)
    monkeypatch.setattr(module.mmap, "mmap", lambda fd, size: Memory(size))

    def written(live, slots, writes):
        Memory.left = 10**9
        page = SharedState(slots)
        Memory.left = writes
        with suppress(Torn):
            live(page)
        return page

    return written


def live_by_claims(page):
    for ids in (IDS, [b"x", b"yz"]):
        page.begin(ids)
        for entry, job_id in enumerate(ids):
            page.start(entry)
            page.limit(5.0, entry)
            page.finish(entry, RETRIED, 3, b"text of " + job_id, is_counted=True, attempt=2)


def live_one_by_one(page):
    for ids in (IDS[:2], [b"x", b"yz"]):
        for job_id in ids:
            entry = page.enter(job_id)
            page.start(entry)
            page.limit(5.0, entry)
            page.finish(entry, RETRIED, 3, b"text of " + job_id, is_counted=True, attempt=2)
            page.told(page.hand_over())


@pytest.mark.parametrize(("live", "slots"), [(live_by_claims, 1), (live_one_by_one, 2)])
def test_whatever_moment_a_child_is_killed_at_what_it_wrote_makes_sense(written, live, slots):
    known, seen = {*IDS, b"x", b"yz"}, Counter()
    for writes in range(120):
        page = written(live, slots, writes)
        for job in page.finished():
            assert job == Finished(job.job_id, RETRIED, 3, True, 2, b"text of " + job.job_id)
            assert job.job_id in known
            seen[job.job_id] += 1
        assert {*page.started(), *page.waiting()} <= set(names(known))
        seen.update(page.started())
        assert len(page.started()) <= 1
    assert len(seen) >= 8  # each job was seen to run, and to be over
