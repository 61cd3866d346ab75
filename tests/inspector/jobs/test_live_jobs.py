"""Many jobs that are not over at once: counted, cancelled and run now in steps."""

import pytest

from django_rtq import signals
from django_rtq.inspector.bulk import VERBS, Bulk
from django_rtq.inspector.jobs import live_jobs
from django_rtq.inspector.jobs.filtered_search import FilteredSearch
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.jobs.job import JobState
from tests.support.jobs import QUEUE, claimed_jobs, new_job, queued_job, retrying_job, scheduled_job

LATER = 10**15


def seeded(broker, state, number=5, **options):
    if state == "running":
        return claimed_jobs(broker, *(new_job(**options) for _ in range(number)))
    seed = {"queued": queued_job, "scheduled": scheduled_job, "retrying": retrying_job}[state]
    return [seed(broker, **options) for _ in range(number)]


def later_job(broker, ms, **options):
    """A queued job that was made then."""
    job = new_job(**options)._replace(id=f"{ms:012x}7{'a' * 19}")
    assert broker.enqueue(QUEUE, [job]) == ["ok"]
    return job


def done(inspector, state, action, limit=1000, until_ms=LATER, **wanted):
    bulk = Bulk(queue=QUEUE, state=state, action=action, filter=JobFilter(**wanted), until_ms=until_ms)
    return [each for step in Bulk.read(bulk.stored()).steps(inspector, limit=limit) for each in step.done]


def states(inspector, jobs):
    return {inspector.find(job.id).state for job in jobs}


@pytest.mark.parametrize("limit", [1, 2, 1000])
@pytest.mark.parametrize("state", ["queued", "scheduled", "retrying"])
def test_waiting_jobs_are_cancelled_step_by_step(redis, broker, inspector, state, limit):
    kept = seeded(broker, state, 2, client="kept")
    jobs = seeded(broker, state, client="x")

    assert inspector.live_jobs.found(QUEUE, state, JobFilter(client="x")).count().count == 5
    assert sorted(done(inspector, state, "cancel", limit, client="x")) == sorted(job.id for job in jobs)

    assert states(inspector, jobs) == {JobState.CANCELLED}
    assert states(inspector, kept) == {JobState(state)}
    assert done(inspector, state, "cancel", limit, client="x") == []


@pytest.mark.parametrize("limit", [1, 2, 1000])
@pytest.mark.parametrize("state", ["scheduled", "retrying"])
def test_delayed_jobs_are_run_now_step_by_step(redis, broker, inspector, state, limit):
    jobs = seeded(broker, state)

    assert sorted(done(inspector, state, "run_now", limit)) == sorted(job.id for job in jobs)

    assert states(inspector, jobs) == {JobState.QUEUED}


def test_running_jobs_are_asked_to_stop(redis, broker, inspector):
    jobs = seeded(broker, "running")

    assert sorted(done(inspector, "running", "cancel")) == sorted(job.id for job in jobs)

    assert all(inspector.find(job.id).is_stopping for job in jobs)


def test_jobs_that_have_started_meanwhile_are_left_alone(redis, broker, inspector):
    (job,) = seeded(broker, "running", 1)

    assert inspector.live_jobs.act(QUEUE, "queued", "cancel", [job.id]) == []

    assert not inspector.find(job.id).is_stopping


def test_jobs_that_are_made_later_are_left_out(redis, broker, inspector):
    first = seeded(broker, "queued", 3)
    found = inspector.live_jobs.found(QUEUE, "queued")
    redis_ms = found.count().until_ms
    later = [later_job(broker, redis_ms + 60_000)]

    assert found.count().count == 3
    assert sorted(done(inspector, "queued", "cancel", until_ms=redis_ms)) == sorted(job.id for job in first)
    assert states(inspector, later) == {JobState.QUEUED}


def test_what_is_left_of_moved_jobs_is_not_counted(redis, broker, inspector):
    """Their ids stay in a lane until a worker gets there."""
    jobs = seeded(broker, "queued", 6)
    for job in jobs[1::2]:
        inspector.job_mover.move(job.id, "other")

    assert inspector.live_jobs.found(QUEUE, "queued").count().count == 3
    assert done(inspector, "queued", "cancel") == [job.id for job in jobs[::2]]


def test_what_is_done_is_signalled(redis, broker, inspector):
    cancelled, promoted = [], []

    def hear_cancelled(job_id, **_):
        cancelled.append(job_id)

    def hear_promoted(job_ids, **_):
        promoted.extend(job_ids)

    signals.job_cancelled.connect(hear_cancelled)
    signals.job_promoted.connect(hear_promoted)
    jobs = sorted(job.id for job in seeded(broker, "scheduled", 2))

    done(inspector, "scheduled", "run_now")
    done(inspector, "queued", "cancel")

    assert sorted(cancelled) == sorted(promoted) == jobs


@pytest.mark.parametrize(("state", "action"), [(s, v) for s in VERBS for v in VERBS[s] if s != "dead"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_reply_hides_nothing(redis, broker, inspector, state, action, moment):
    jobs = [job.id for job in seeded(broker, state, 3)]
    redis.load_scripts()
    redis.drop_connection(moment)

    assert inspector.live_jobs.act(QUEUE, state, action, jobs) == jobs


def test_arguments_and_words_need_the_records(broker, inspector):
    with pytest.raises(ValueError, match="records have to be read"):
        inspector.live_jobs.found(QUEUE, "queued", JobFilter(words=("x",))).count()


@pytest.mark.parametrize("state", ["queued", "scheduled", "retrying", "running"])
def test_all_jobs_of_a_state_are_counted_without_a_look_at_them(redis, broker, inspector, state, monkeypatch):
    seeded(broker, state, 3)
    found = inspector.live_jobs.found(QUEUE, state)
    monkeypatch.setattr(FilteredSearch, "next_ids", None)

    counted = found.count()

    assert (counted.count, counted.is_complete) == (3, True)


def test_of_very_many_jobs_the_first_ones_are_counted(redis, broker, inspector, monkeypatch):
    seeded(broker, "queued", 4, client="x")
    seeded(broker, "queued", 4, client="y")
    monkeypatch.setattr(live_jobs, "MOST_COUNTED", 3)
    monkeypatch.setattr(live_jobs, "STEP", 3)

    filtered = inspector.live_jobs.found(QUEUE, "queued", JobFilter(task="send_mail")).count()
    assert (filtered.searched, filtered.total, filtered.is_complete) == (3, 8, False)

    left = inspector.live_jobs.found(QUEUE, "queued", until_ms=LATER).count()
    assert (left.count, left.is_complete) == (8, True)
