"""gone -> dead: what a person has deleted is back. Waiting jobs: see test_restore_waiting.py."""

import pytest

from django_rtq import signals
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.actions import LATEST
from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs import undo
from django_rtq.inspector.sweep import run_steps
from tests.support import sweeps
from tests.support.jobs import QUEUE, claim_all, claimed_job, dead_job, lose_record, queued_job, unique_job
from tests.support.snapshots import changes, snapshot

TOKEN = undo.new_token("discard")


def restore(inspector, token=TOKEN):
    """The ids of all steps."""
    return sweeps.run(inspector, "restore", undo=token).done


def without_undo(taken):
    """A snapshot without what is set aside, and without counters."""
    return {key: value for key, value in taken.items() if not key.startswith(("undo", "stats"))}


def test_dead_letters_are_as_they_were(redis, broker, inspector):
    jobs = [dead_job(broker, name, client="acme", priority=3) for name in "abc"]
    crashed = claimed_job(broker, "d", max_crashes=0)
    broker.reclaim_child(QUEUE, "w1", [crashed.id])
    before = snapshot(redis)

    assert inspector.discard(QUEUE, [job.id for job in [*jobs, crashed]], undo=TOKEN) == [
        job.id for job in [*jobs, crashed]
    ]
    assert not {"dead", "jobs", "failures", "errors", "crashes"} & set(snapshot(redis))
    assert set(restore(inspector)) == {job.id for job in [*jobs, crashed]}

    assert without_undo(snapshot(redis)) == without_undo(before)


def test_they_can_be_requeued_afterwards(broker, inspector):
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)
    restore(inspector)

    assert inspector.requeue(QUEUE, [job.id]) == [job.id]
    assert claim_all(broker) == [job.id]


def test_without_a_token_nothing_is_set_aside(redis, broker, inspector):
    job = dead_job(broker)

    inspector.discard(QUEUE, [job.id])

    assert not [key for key in snapshot(redis) if key.startswith("undo")]
    assert restore(inspector) == []


def test_what_is_set_aside_expires(redis, broker, inspector):
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)
    keys = broker.keys.of(QUEUE)
    kept = keys.undo + TOKEN.encode()
    assert undo.OFFERED_SECONDS < redis.ttl(kept) <= 3600  # while the action goes on
    assert inspector.undos.read(QUEUE, TOKEN).seconds is None

    closed = inspector.undos.close(QUEUE, TOKEN)

    assert (closed.jobs, closed.is_too_much) == (1, False)
    assert 0 < closed.seconds <= undo.OFFERED_SECONDS
    assert undo.OFFERED_SECONDS - 20 < redis.ttl(kept) <= undo.OFFERED_SECONDS + 10
    assert 0 < redis.ttl(keys.undos) <= 3600


def test_when_it_has_expired_nothing_comes_back(redis, broker, inspector):
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)
    redis.pexpire(broker.keys.of(QUEUE).undo + TOKEN.encode(), 0)

    assert restore(inspector) == []
    assert inspector.undos.read(QUEUE, TOKEN) == undo.AsideJobs()
    assert "jobs" not in snapshot(redis)


def test_the_second_undo_finds_nothing(redis, broker, inspector):
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)
    restore(inspector)
    before = snapshot(redis)

    assert restore(inspector) == []
    assert snapshot(redis) == before


def test_a_lost_reply_is_given_again(redis, broker, inspector):
    jobs = [dead_job(broker) for _ in range(250)]
    inspector.discard(QUEUE, [job.id for job in jobs], undo=TOKEN)
    restored = []
    steps = sweeps.steps(inspector, "restore", undo=TOKEN)
    restored += next(steps).done

    redis.drop_connection("after")
    restored += run_steps(steps).done

    assert sorted(restored) == sorted(job.id for job in jobs)
    assert inspector.queues.get(QUEUE).dead == 250


def test_a_call_that_is_sent_twice_does_not_go_on(broker, inspector):
    jobs = [dead_job(broker) for _ in range(3)]
    inspector.discard(QUEUE, [job.id for job in jobs], undo=TOKEN)
    call = SCRIPTS["restore"].call(broker.keys.of(QUEUE), (TOKEN, "call", 60_000, 2, 60_000))

    replies = [broker.redis.execute_one(call) for _ in range(2)]

    assert replies[0] == replies[1] == [1, 0, jobs[2].id.encode(), jobs[1].id.encode()]
    assert inspector.queues.get(QUEUE).dead == 2


def large_dead_jobs(broker):
    """Two of them are more than a call copies, and one alone is."""
    sizes = (150_000, 150_000, 250_000, 10, 10)
    return [dead_job(broker, body='{"task":"a","args":["' + "x" * size + '"]}').id for size in sizes]


def test_large_jobs_are_copied_in_several_calls(broker, inspector):
    ids = large_dead_jobs(broker)
    arguments = (LATEST, undo.script_argument(TOKEN), *ids)
    call = SCRIPTS["discard"].call(broker.keys.of(QUEUE), arguments)

    parts = [[job_id.decode() for job_id in broker.redis.execute_one(call)] for _ in range(5)]

    assert parts == [ids[:1], ids[1:2], ids[2:3], ids[3:], []]
    assert [step.done for step in sweeps.steps(inspector, "restore", undo=TOKEN)] == [
        ids[:2:-1],
        ids[2:3],
        ids[1:2],
        ids[:1],
    ]


@pytest.mark.parametrize("is_lost", [False, True])
def test_all_large_jobs_are_discarded(redis, broker, inspector, is_lost):
    ids = large_dead_jobs(broker)
    if is_lost:
        redis.drop_connection("after")

    assert sorted(inspector.discard(QUEUE, ids, undo=TOKEN)) == sorted(ids)

    assert inspector.undos.read(QUEUE, TOKEN).jobs == 5
    assert set(restore(inspector)) == set(ids)


def test_two_people_undo_the_same(broker, inspector):
    jobs = [dead_job(broker) for _ in range(350)]
    inspector.discard(QUEUE, [job.id for job in jobs], undo=TOKEN)
    one, other = (sweeps.steps(inspector, "restore", undo=TOKEN) for _ in range(2))

    restored = [*next(one).done, *next(other).done, *run_steps(one).done, *run_steps(other).done]

    assert sorted(restored) == sorted(job.id for job in jobs)


def test_other_actions_are_not_undone(broker, inspector):
    one, other = dead_job(broker), dead_job(broker)
    inspector.discard(QUEUE, [one.id], undo=TOKEN)
    inspector.discard(QUEUE, [other.id], undo=undo.new_token("discard"))

    assert restore(inspector) == [one.id]
    assert inspector.queues.get(QUEUE).dead == 1


def test_what_is_there_already_stays_as_it_is(redis, broker, inspector):
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)
    broker.enqueue(QUEUE, [queued_job(broker, "other")._replace(id=job.id)])
    before = snapshot(redis)

    assert restore(inspector) == [job.id]
    assert set(changes(before, snapshot(redis))) <= {"undos", f"undo:{TOKEN}"}


def test_a_dead_letter_without_a_record_does_not_come_back(broker, inspector):
    job, lost = dead_job(broker), dead_job(broker)
    lose_record(broker, lost)

    assert inspector.discard(QUEUE, [job.id, lost.id], undo=TOKEN) == [job.id, lost.id]
    assert inspector.undos.read(QUEUE, TOKEN).jobs == 1
    assert restore(inspector) == [job.id]


def test_a_unique_dead_letter_comes_back_beside_a_new_job_like_it(broker, inspector):
    first = unique_job("a")
    broker.enqueue_unique(QUEUE, [first])
    broker.sign_on([QUEUE], "w1")
    claim_all(broker)
    broker.reclaim_child(QUEUE, "w1", [first.id])
    dead = [job.id for job in inspector.job_list.page(QUEUE, "dead").jobs]
    inspector.discard(QUEUE, dead, undo=TOKEN)
    second = unique_job("b")
    broker.enqueue_unique(QUEUE, [second])

    assert restore(inspector) == dead
    assert inspector.requeue(QUEUE, dead) == []  # the other holds the digest


def test_a_queue_that_was_forgotten_is_listed_again(broker, inspector):
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)
    broker.sign_off([QUEUE], "w1")
    broker.redis.execute_one(("SREM", broker.keys.queues, QUEUE))

    restore(inspector)

    assert inspector.queues.names() == [QUEUE]


@pytest.mark.parametrize(("limit", "value"), [("MOST_JOBS", 3), ("MOST_BYTES", 1000)])
def test_too_much_cannot_be_undone(redis, broker, inspector, monkeypatch, limit, value):
    monkeypatch.setattr(undo, limit, value)
    jobs = [dead_job(broker, body='{"task":"a","args":["' + "x" * 300 + '"]}') for _ in range(6)]
    few = undo.new_token("discard")
    inspector.discard(QUEUE, [jobs[0].id], undo=few)

    for job in jobs[1:]:
        assert inspector.discard(QUEUE, [job.id], undo=TOKEN) == [job.id]

    assert inspector.undos.close(QUEUE, TOKEN).is_too_much
    assert restore(inspector) == []
    assert inspector.undos.read(QUEUE, few).jobs == 1  # another action that could be undone still can
    assert restore(inspector, few) == [jobs[0].id]


def test_what_has_expired_makes_room(redis, broker, inspector, monkeypatch):
    monkeypatch.setattr(undo, "MOST_JOBS", 1)
    old, new = dead_job(broker), dead_job(broker)
    gone = undo.new_token("discard")
    inspector.discard(QUEUE, [old.id], undo=gone)
    redis.delete(broker.keys.of(QUEUE).undo + gone.encode())

    inspector.discard(QUEUE, [new.id], undo=TOKEN)

    assert not inspector.undos.close(QUEUE, TOKEN).is_too_much
    assert gone not in snapshot(redis)["undos"]


def test_the_signal_names_the_jobs(broker, inspector):
    told = []
    job = dead_job(broker)
    inspector.discard(QUEUE, [job.id], undo=TOKEN)

    signals.job_restored.connect(note := lambda sender, job_ids, queue, **_: told.append((sender, job_ids, queue)))
    restore(inspector)
    signals.job_restored.disconnect(note)

    assert told == [(Inspector, [job.id], QUEUE)]


@pytest.mark.parametrize("token", ["", "discard-", "requeue-" + "0" * 32, "discard-" + "0" * 31 + "\n", "x"])
def test_what_is_no_token(token):
    assert undo.verb_of(token) == ""
    assert undo.verb_of(TOKEN) == "discard"
