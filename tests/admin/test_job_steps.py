"""The page of a job that remembers what it has done."""

from tests.admin.conftest import text
from tests.broker.model.step_calls import holder, send_event, suspend
from tests.support.jobs import QUEUE, claimed_job, queued_job

PAGE = "/admin/django_rtq/job/"


def test_finished_steps_are_shown_with_their_results(redis, broker, operator):
    job = claimed_job(broker, "a")
    broker.steps.write(holder(broker, job), "step charge <b>", '1795205063204 1500000 {"id":7,"password":"swordfish"}')
    send_event(broker, job, "other", value='{"x":1}')
    broker.steps.write(holder(broker, job), "each lines", "{}")
    suspend(broker, job)

    html = text(operator.get(f"{PAGE}{job.id}/"))

    assert "Finished steps" in html
    assert "charge &lt;b&gt;" in html
    assert "&quot;id&quot;: 7" in html
    assert "swordfish" not in html
    assert "It waits for event approved, for" in html
    assert "Finished steps" not in text(operator.get(f"{PAGE}{queued_job(broker).id}/"))


def test_a_job_that_sleeps_says_so(redis, broker, operator):
    job = claimed_job(broker, "a")
    suspend(broker, job, waits_for="1 0", ms=3_600_000)

    html = text(operator.get(f"{PAGE}{job.id}/"))

    assert "It sleeps for" in html


def test_a_job_that_has_failed_before_is_scheduled_while_it_waits(redis, broker, inspector):
    job = claimed_job(broker, "a")
    redis.hset(broker.keys.of(QUEUE).failures, job.id, 1)
    suspend(broker, job)

    assert inspector.find(job.id).state == "scheduled"
