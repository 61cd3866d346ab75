"""Something is done with many jobs: counted, and done in steps."""

from dataclasses import replace

import pytest

from django_rtq import signals
from django_rtq.console.reading import sweep as sweep_module
from django_rtq.console.reading.jobs.walk import JobWalk
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.sweep import Sweep
from django_rtq.core.jobs.job import JobState
from tests.support.commands import dead_letter
from tests.support.jobs import QUEUE, SEEDS, claimed_jobs, new_job, queued_job, receiving, scheduled_job
from tests.support.snapshots import live_jobs, snapshot
from tests.support.sweeps import count, run, steps, sweep
from tests.support.workflows import begun_flow

LATER = 10**15


def seeded(broker, state, number=5, **options):
    return [SEEDS[state](broker, **options) for _ in range(number)]


def later_job(broker, ms, **options):
    """A queued job that was made then."""
    job = new_job(**options)._replace(id=f"{ms:012x}7{'a' * 19}")
    assert broker.enqueue(QUEUE, [job]) == ["ok"]
    return job


def done(readers, state, action, limit=1000, until_ms=LATER, **wanted):
    stored = sweep(action, states=[state], until_ms=until_ms, **wanted).stored()
    return [job_id for step in readers.sweeps.steps(Sweep.read(stored), limit=limit) for job_id in step.done]


def states(readers, jobs):
    return {readers.find(job.id).state for job in jobs}


def test_jobs_that_are_made_later_are_left_out(redis, broker, readers):
    first = seeded(broker, "queued", 3)
    redis_ms = count(readers, "cancel", states=["queued"]).until_ms
    later = [later_job(broker, redis_ms + 60_000)]

    assert count(readers, "cancel", states=["queued"], until_ms=redis_ms).count == 3
    assert sorted(done(readers, "queued", "cancel", until_ms=redis_ms)) == sorted(job.id for job in first)
    assert states(readers, later) == {JobState.QUEUED}


def test_what_is_done_is_signalled(redis, broker, readers):
    cancelled, promoted = [], []
    jobs = sorted(job.id for job in seeded(broker, "scheduled", 2))

    with receiving(lambda job_ids, **_: promoted.extend(job_ids), signals.job_promoted):
        done(readers, "scheduled", "run_now")
    with receiving(lambda job_id, **_: cancelled.append(job_id), signals.job_cancelled):
        done(readers, "queued", "cancel")

    assert sorted(cancelled) == sorted(promoted) == jobs


@pytest.mark.parametrize("hold", ["paused client", "full client", "paused queue"])
def test_a_client_has_no_job_afterwards(redis, broker, readers, rtq, hold):
    kept = [*claimed_jobs(broker, new_job(client="x")), queued_job(broker, client="y")]
    for _ in range(30):
        queued_job(broker, client="x")
        queued_job(broker, client="x", priority=5)
        scheduled_job(broker, client="x")
    {
        "paused client": lambda: rtq.clients["x"].pause(QUEUE),
        "full client": lambda: rtq.clients["x"].limit(QUEUE, max_running=0),
        "paused queue": rtq.queues[QUEUE].pause,
    }[hold]()

    assert count(readers, "cancel", client="x").count == run(readers, "cancel", client="x").count == 90

    assert set(live_jobs(redis)) == {job.id for job in kept}
    assert not {"cancelled_in_lane", "lane:0:x", "lane:5:x"} & set(snapshot(redis))


def test_hidden_values_are_not_found(broker, readers):
    queued_job(broker, body='{"task":"ship","kwargs":{"token":"abc"}}')
    wanted = sweep("cancel", text="abc")

    def hide(job):
        return replace(job, kwargs={})

    assert readers.sweeps.count(wanted, shown=hide).count == 0
    assert [step.count for step in readers.sweeps.steps(wanted, shown=hide)] == [0]
    assert readers.sweeps.count(wanted).count == 1


@pytest.mark.parametrize("state", ["queued", "scheduled", "retrying", "running"])
def test_all_jobs_of_a_state_are_counted_without_a_look_at_them(redis, broker, readers, state, monkeypatch):
    seeded(broker, state, 3)
    monkeypatch.setattr(JobWalk, "count", None)

    counted = count(readers, "cancel", states=[state])

    assert (counted.count, counted.is_complete) == (3, True)


def test_of_very_many_jobs_the_first_ones_are_counted(redis, broker, readers, monkeypatch):
    seeded(broker, "queued", 4, client="x")
    seeded(broker, "queued", 4, client="y")
    monkeypatch.setattr(sweep_module, "MOST_COUNTED", 3)
    monkeypatch.setattr(sweep_module, "STEP", 3)

    filtered = count(readers, "cancel", states=["queued"], task="send_mail")
    assert (filtered.searched, filtered.total, filtered.is_complete, filtered.cut) == (3, 8, False, {QUEUE})

    left = count(readers, "cancel", states=["queued"], until_ms=LATER)
    assert (left.count, left.is_complete) == (8, True)


def test_a_queue_is_left_until_the_workflows_of_an_erased_client_are_deleted(broker, readers):
    begun_flow(broker, client="bakery")
    *before, last = steps(readers, "erase", client="bakery")
    assert all(step.queues_left for step in before)
    assert (last.workflows, last.queues_left) == (1, ())


# -- several queues and states


@pytest.fixture
def everywhere(broker):
    """Jobs in each state of two queues; by verb, the ids of those that it is about."""
    dead = [dead_letter(broker, queue=queue) for queue in "aaabbb"]
    delayed = [scheduled_job(broker, queue=queue).id for queue in "aabb"]
    waiting = [*delayed, *(queued_job(broker, queue=queue).id for queue in "aabb")]
    return {"cancel": waiting, "run_now": delayed, "requeue": dead, "discard": dead, "purge": waiting}


def finish(readers, wanted, limit):
    """Returns the ids, how many were purged, and the queues that were left after each step."""
    steps = list(readers.sweeps.steps(wanted, limit=limit))
    return (
        [job_id for step in steps for job_id in step.done],
        sum(step.purged for step in steps),
        [step.queues_left for step in steps],
    )


@pytest.mark.parametrize("limit", [1, 3, 1000])
@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("cancel", {}),
        ("cancel", {"client": ""}),
        ("run_now", {}),
        ("requeue", {}),
        ("discard", {}),
        ("purge", {}),
    ],
)
def test_each_action_goes_on_from_queue_to_queue(readers, everywhere, verb, more, limit):
    wanted = sweep(verb, queues=("a", "b"), **more)
    counted = readers.sweeps.count(wanted)

    ids, purged, left = finish(readers, wanted, limit)

    assert counted.by_queue == {"a": len(everywhere[verb]) // 2, "b": len(everywhere[verb]) // 2}
    assert len(ids) + purged == counted.count
    assert sorted(ids) == ([] if verb == "purge" else sorted(everywhere[verb]))
    assert [len(queues) for queues in left] == sorted((len(queues) for queues in left), reverse=True)
    assert left[-1] == ()
    assert finish(readers, wanted, limit)[:2] == ([], 0)


def test_without_a_moment_it_is_about_the_jobs_of_now(broker, readers):
    queued_job(broker)
    now_ms = count(readers, "cancel").until_ms
    later = later_job(broker, now_ms + 60_000)

    assert run(readers, "cancel", states=["queued"], until_ms=None).count == 1
    assert states(readers, [later]) == {JobState.QUEUED}


def test_ids_are_looked_for_in_each_queue(readers, everywhere):
    selection = Selection(queues=["a", "b"], ids=[*everywhere["requeue"], "unknown"])

    results = list(readers.sweeps.steps(Sweep(verb="requeue", selection=selection)))

    assert [len(result.done) for result in results] == [3, 3]
    assert results[-1].answers["unknown"] == "left"
