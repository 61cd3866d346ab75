"""The entries in shared memory: which jobs were claimed, and their status."""

from collections import Counter
from contextlib import suppress

import pytest

from django_rtq.core.broker.settlement import Report
from django_rtq.core.worker import shared_memory as module
from django_rtq.core.worker.outcome import ACKED, BURIED, CANCELLED, EXPIRED, RETRIED
from django_rtq.core.worker.shared_memory import MAX_BATCH, MAX_ID_BYTES, TEXTS, TOMBSTONE_MS, SharedState
from tests.core.worker.shared_states import ID, IDS, acked, names, running


def test_the_jobs_of_a_claim_wait_then_run_then_are_over(shared):
    shared.start_batch(IDS)
    assert shared.waiting() == names(IDS)
    assert shared.running() == []

    shared.start(0)
    shared.finish(0, ACKED, 7, b"zero")
    shared.start(1)

    assert shared.running() == names(IDS[1:2])
    assert shared.waiting() == names(IDS[2:])
    assert shared.finished() == [acked(IDS[0], b"zero", ms=7)]


def test_ids_of_any_length_are_found_again(shared):
    ids = [b"a", b"x" * MAX_ID_BYTES, b"", b"\xff", b"bc  "]
    shared.start_batch(ids)
    for entry in range(5):
        shared.start(entry)
        shared.finish(entry, ACKED, 1)

    assert [job.job_id for job in shared.finished()] == ids


@pytest.mark.parametrize("slots", [1, 2])
def test_an_id_that_is_too_long_does_no_harm(slots):
    shared, entry = running(slots, b"x" * (MAX_ID_BYTES + 1))

    assert shared.running() == shared.waiting() == []
    shared.finish(entry, ACKED, 1)
    assert shared.finished() == [acked(b"", b"")]


def test_as_many_jobs_as_one_claim_brings_have_room(shared):
    ids = [b"%03d" % number + b"x" * (MAX_ID_BYTES - 3) for number in range(MAX_BATCH)]
    shared.start_batch(ids)
    for entry in range(MAX_BATCH):
        shared.start(entry)
        shared.set_runs_once(entry)
        shared.set_deadline(entry + 1.0, entry)

    assert shared.running() == shared.running_once() == names(ids)
    assert shared.overdue(2.0) == names(ids[:2])


@pytest.mark.parametrize("verb", [RETRIED, BURIED, EXPIRED, CANCELLED])
def test_every_outcome_is_read_as_it_was_written(verb):
    shared, entry = running()
    shared.finish(entry, verb, 10**12, b"text", is_counted=False, attempt=3)

    assert shared.finished() == [Report(verb, ID, 10**12, b"text", 0, 3)]
    assert shared.running() == []


def test_entries_of_slots_do_not_overlap():
    shared = SharedState(3)
    entries = [shared.add_entry(letter * MAX_ID_BYTES) for letter in (b"a", b"b", b"c")]
    for deadline, entry in enumerate(entries):
        shared.start(entry)
        shared.set_runs_once(entry)
        shared.set_deadline(deadline + 1.0, entry)
    shared.finish(entries[1], ACKED, 5, b"done")

    assert shared.running() == shared.running_once() == ["a" * MAX_ID_BYTES, "c" * MAX_ID_BYTES]
    assert shared.overdue(1.0) == ["a" * MAX_ID_BYTES]
    assert shared.finished() == [acked(b"b" * MAX_ID_BYTES, b"done", ms=5)]


def test_what_is_over_is_kept_until_it_was_told_though_its_slot_is_taken_again():
    shared = SharedState(2)
    for round_number in range(50):
        entries = [shared.add_entry(b"%d" % slot) for slot in range(2)]
        for entry in entries:
            shared.start(entry)
            shared.finish(entry, ACKED, 1, b"x" * 50_000)
        over = shared.take_finished()
        later = shared.add_entry(b"later")
        shared.start(later)
        shared.finish(later, ACKED, 1, b"y" * 50_000)
        if round_number % 5 == 0:  # an answer got lost
            shared.put_back(over)
            over = shared.take_finished()
        kept = {job.job_id: set(job.text) for job in shared.finished()}
        assert kept == {b"0": set(b"x"), b"1": set(b"x"), b"later": set(b"y")}
        shared.confirm_reported(over)
        shared.confirm_reported(shared.take_finished())
        assert shared.finished() == []


def test_a_text_without_room_is_refused_and_the_job_still_runs_but_short_ones_have_room(shared):
    shared.start_batch(IDS)
    for entry in range(5):
        shared.start(entry)
    assert not shared.finish(0, ACKED, 1, b"x" * TEXTS)
    assert shared.finish(0, ACKED, 1, b"x" * (TEXTS - 100_000))
    assert not shared.finish(1, ACKED, 1, b"x" * 50_000)
    assert shared.running() == names(IDS[1:])
    assert shared.finish(1, ACKED, 1, b"short" * 10)

    assert [len(job.text) for job in shared.finished()] == [TEXTS - 100_000, 50]


def test_when_nothing_has_room_an_empty_text_has(shared):
    shared.start_batch([b"%d" % number for number in range(MAX_BATCH)])
    answers = []
    for entry in range(MAX_BATCH):
        shared.start(entry)
        answers.append(shared.finish(entry, ACKED, 1, b"x" * 20_000) or shared.finish(entry, ACKED, 1, b"y" * 1_900))
        answers[-1] = answers[-1] or shared.finish(entry, ACKED, 1)

    assert answers == [True] * MAX_BATCH
    assert {len(job.text) for job in shared.finished()} == {20_000, 1_900, 0}


def test_a_job_is_overdue_from_its_deadline_on():
    shared, entry = running()
    shared.set_deadline(100.0, entry)

    assert shared.overdue(99.9) == []
    assert shared.overdue(100.0) == [ID.decode()]
    shared.finish(entry, ACKED, 1)
    assert shared.overdue(100.0) == []


@pytest.mark.parametrize("slots", [1, 2])
def test_neither_a_deadline_nor_a_mark_is_passed_on_to_the_next_job(slots):
    shared, entry = running(slots)
    shared.set_deadline(100.0, entry)
    shared.set_runs_once(entry)
    shared.finish(entry, ACKED, 1)
    if slots == 1:
        shared.start_batch([b"another"])
    else:
        shared.confirm_reported(shared.take_finished())
        assert shared.add_entry(b"another") == entry
    shared.start(entry)

    assert shared.running() == ["another"]
    assert shared.overdue(1e9) == []
    assert shared.running_once() == []


def test_a_job_that_succeeded_and_of_which_nothing_is_kept_is_told_so_too():
    shared, entry = running()
    shared.finish_without_result(entry)

    assert shared.finished() == [acked(ID, b"", ms=TOMBSTONE_MS)]
    assert shared.running() == []


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
    for name in ("_TIME", "_COUNT", "_OUTCOME", "_ACKED"):
        monkeypatch.setattr(module, name, Packed(getattr(module, name)))
    monkeypatch.setattr(module, "TEXTS", 2_000)
    monkeypatch.setattr(module, "_FULL", 1_000)
    monkeypatch.setattr(module.mmap, "mmap", lambda fd, size: Memory(size))

    def written(live, slots, writes):
        Memory.left = 10**9
        shared = SharedState(slots)
        Memory.left = writes
        with suppress(Torn):
            live(shared)
        return shared

    return written


def live_by_claims(shared):
    for ids in (IDS, [b"x", b"yz"]):
        shared.start_batch(ids)
        for entry, job_id in enumerate(ids):
            shared.start(entry)
            shared.set_deadline(5.0, entry)
            shared.finish(entry, RETRIED, 3, b"text of " + job_id, is_counted=True, attempt=2)


def live_one_by_one(shared):
    for ids in (IDS[:2], [b"x", b"yz"]):
        for job_id in ids:
            entry = shared.add_entry(job_id)
            shared.start(entry)
            shared.set_deadline(5.0, entry)
            shared.finish(entry, RETRIED, 3, b"text of " + job_id, is_counted=True, attempt=2)
            shared.confirm_reported(shared.take_finished())


@pytest.mark.parametrize(("live", "slots"), [(live_by_claims, 1), (live_one_by_one, 2)])
def test_whatever_moment_a_child_is_killed_at_what_it_wrote_makes_sense(written, live, slots):
    known, seen = {*IDS, b"x", b"yz"}, Counter()
    for writes in range(120):
        shared = written(live, slots, writes)
        for job in shared.finished():
            assert job == Report(RETRIED, job.job_id, 3, b"text of " + job.job_id, 1, 2)
            assert job.job_id in known
            seen[job.job_id] += 1
        assert {*shared.running(), *shared.waiting()} <= set(names(known))
        seen.update(shared.running())
        assert len(shared.running()) <= 1
    assert len(seen) >= 8  # each job was seen to run, and to be over
