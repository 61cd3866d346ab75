"""Jobs whose task a worker does not know."""

from tests.app import tasks
from tests.support.apps import look, readers_of
from tests.support.jobs import queued_job
from tests.support.waiting import wait_until

TASK = "shop.tasks.of_next_week"


def test_they_are_an_incident_at_once_and_one_line_in_the_log(rtq_worker, redis, broker, journal):
    for number in range(20):
        queued_job(broker, f"a{number:02}", body=f'{{"task":"{TASK}"}}')
    known = tasks.note.delay("known")
    worker = rtq_worker()
    wait_until(lambda: redis.zcard("{rtq:default}:scheduled") == 20 and known.state.is_final)

    (found,) = [incident for incident in look(readers_of()).incidents if incident.kind == "task_unknown"]
    assert (found.task, found.queue, found.is_critical) == (TASK, "default", False)
    assert 10 <= found.values["count"] <= 20  # a half minute may have ended between them
    assert f":{worker.child}" in found.values["worker"][0]
    worker.stop()
    assert worker.log.count("waits 30 s for a worker that knows its task") == 1
    assert f"No task {TASK!r} is registered here" in worker.log
    assert "Traceback" not in worker.log
    assert b"File" not in redis.hget("{rtq:default}:errors", redis.zrange("{rtq:default}:scheduled", 0, 0)[0])
