"""The memory that a process shares with its supervisor."""

import math
import os

import pytest

from django_rtq.core.worker.shared_memory import (
    ACKED,
    MAX_NAME_BYTES,
    Revoked,
    SharedState,
)
from tests.core.worker.shared_states import ID, IDS, acked, names, running


@pytest.mark.parametrize("name", ["w", "host:123:abcdef01", "x" * MAX_NAME_BYTES])
def test_the_name_is_that_of_the_last_signature(name, shared):
    shared.set_name("somebody-before-with-a-long-name")
    shared.set_name(name)

    assert shared.worker == name
    assert shared.last_claim() == (0, 0.0)


def test_the_parent_reads_what_the_child_wrote(shared):
    if not (pid := os.fork()):
        shared.set_name("child")
        shared.record_claim(jobs_done=7, claimed_at=1.5)
        shared.start_batch([ID, b"other"])
        shared.start(0)
        shared.finish(0, ACKED, 5, b"result")
        shared.start(1)
        shared.set_runs_once(1)
        os._exit(0)
    os.waitpid(pid, 0)

    assert (shared.worker, shared.last_claim(), shared.alive_at) == ("child", (7, 1.5), 1.5)
    assert shared.running() == shared.running_once() == ["other"]
    assert shared.finished() == [acked(ID, b"result", ms=5)]


def test_the_last_sign_of_life_counts_and_who_leaves_needs_none(shared):
    seen = []
    for now in (1.0, 2.0, math.inf, 3.0):
        shared.set_alive(now)
        seen.append(shared.alive_at)
    shared.record_claim(jobs_done=1, claimed_at=5.0)

    assert seen == [1.0, 2.0, math.inf, math.inf]


# -- wishes of the supervisor


def test_a_job_is_asked_to_stop_where_it_runs():
    shared = SharedState(3)
    entries = [shared.add_entry(job_id) for job_id in (b"a", ID, b"b")]
    for entry in entries:
        shared.start(entry)
    shared.request_cancel("other")
    assert shared.cancel_requests() == []

    shared.request_cancel(ID.decode())

    assert shared.cancel_requests() == [ID]
    assert [shared.is_cancel_requested(ID, entry) for entry in entries] == [False, True, False]
    assert sorted(shared.running()) == sorted(["a", "b", ID.decode()])


def test_a_wish_that_comes_too_late_hits_nobody():
    shared, entry = running()
    shared.request_cancel(ID.decode())
    shared.finish(entry, ACKED, 1)
    assert shared.cancel_requests() == []

    shared.start_batch([b"next"])
    shared.start(0)

    assert shared.cancel_requests() == []
    assert not shared.is_cancel_requested(b"next", 0)
    shared.request_cancel("next")
    assert shared.cancel_requests() == [b"next"]


# -- what the supervisor takes away


def test_of_a_claim_whose_rest_was_taken_nothing_more_starts_but_of_the_next_one(shared):
    shared.start_batch(IDS)
    shared.start(0)
    shared.revoke(Revoked.REST, shared.claim_number)

    assert shared.revoked is Revoked.REST
    assert not shared.start(1)
    assert shared.running() == names(IDS[:1])
    shared.revoke(Revoked.REST, shared.claim_number)  # once more: it is not without a mark for a moment
    assert not shared.start(1)
    shared.start_batch(IDS)
    assert shared.revoked is Revoked.NOTHING
    assert shared.has_revocation
    assert shared.start(0)


@pytest.mark.parametrize("slots", [1, 2])
def test_who_was_given_up_starts_nothing_until_it_has_another_name(slots):
    shared = SharedState(slots)
    shared.set_name("old")
    shared.revoke(Revoked.ALL, shared.claim_number)
    entry = 0
    if slots == 1:
        shared.start_batch(IDS)
    else:
        entry = shared.add_entry(ID)

    assert shared.revoked is Revoked.ALL
    assert not shared.start(entry)
    assert shared.running() == []
    shared.set_name("new")
    assert shared.revoked is Revoked.NOTHING
    assert running(slots)[0].running() == [ID.decode()]


def test_whether_redis_has_back_what_was_given_back_is_known_until_the_next_claim(shared):
    shared.start_batch(IDS)
    shared.start(0)
    shared.start(1)
    shared.release_from(2)

    assert shared.waiting() == names(IDS[2:])
    assert shared.running() == names(IDS[:2])
    assert not shared.is_reported
    shared.mark_reported()
    assert shared.is_reported
    shared.start_batch(IDS)
    assert not shared.is_reported
