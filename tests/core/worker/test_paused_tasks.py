"""Workers leave the jobs of paused tasks alone, and run those of others."""

from django_rtq import JobState
from tests.app import tasks
from tests.support.waiting import wait_until

NOTE, SLEEP = tasks.note.name, tasks.sleep.name


def test_jobs_of_other_tasks_go_on(rtq_worker, journal, inspector):
    inspector.task_pauses.pause_task(NOTE, "default", by="eve")
    paused = [tasks.note.using(client=f"c{number % 3}").delay(f"paused-{number}") for number in range(200)]
    others = [tasks.sleep.using(client=f"c{number % 3}").delay(f"other-{number}", 0) for number in range(50)]
    rtq_worker("--concurrency", 4)
    wait_until(lambda: all(job.state is JobState.SUCCEEDED for job in others))
    wait_until(lambda: inspector.queues.get("default").held == 200)
    assert {job.state for job in paused} == {JobState.SCHEDULED}
    assert not [entry for entry in journal.entries("start") if entry.name.startswith("paused")]

    assert inspector.task_pauses.resume_task(NOTE) == ["default"]

    wait_until(lambda: all(job.state is JobState.SUCCEEDED for job in paused))
    assert inspector.queues.get("default").paused_tasks == ()
