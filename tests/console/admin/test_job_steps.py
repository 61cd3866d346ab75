"""The page of a job that remembers what it has done."""

import pytest

from tests.console.admin.conftest import text
from tests.protocol.model.step_calls import holder, send_event, suspend, waiting_job, write_step
from tests.support.jobs import QUEUE, WORKER, claim, claimed_job, queued_job, settle

PAGE = "/admin/django_rtq/job/"


def test_finished_steps_are_shown_with_their_results(redis, broker, operator):
    job = claimed_job(broker, "a")
    write_step(broker, holder(broker, job), "step charge <b>", '1795205063204 1500000 {"id":7,"password":"swordfish"}')
    send_event(broker, job, "other", value='{"x":1}')
    write_step(broker, holder(broker, job), "each lines", "{}")
    write_step(broker, holder(broker, job), "step api_token", '1795205063204 1500000 "mackerel"')
    suspend(broker, job)

    html = text(operator.get(f"{PAGE}{job.id}/"))

    assert "Finished steps" in html
    assert "charge &lt;b&gt;" in html
    assert "&quot;id&quot;: 7" in html
    assert "swordfish" not in html
    assert "mackerel" not in html
    assert "It waits for event approved, for" in html
    assert "Finished steps" not in text(operator.get(f"{PAGE}{queued_job(broker).id}/"))


def test_steps_are_shown_as_long_as_the_result_of_the_job(redis, broker, operator):
    job = claimed_job(broker, "a")
    write_step(broker, holder(broker, job), "step charge", "1795205063204 1500000 7")
    settle(broker, "ack", job, outcome='{"state":"succeeded","result":1}', keep_ms=60_000)

    assert "Finished steps" in text(operator.get(f"{PAGE}{job.id}/"))
    assert 0 < redis.ttl(broker.keys.of(QUEUE).steps + job.id.encode()) <= 60


def test_a_job_that_has_failed_before_is_scheduled_while_it_waits(redis, broker, readers):
    job = claimed_job(broker, "a")
    redis.hset(broker.keys.of(QUEUE).failures, job.id, 1)
    suspend(broker, job)

    assert readers.find(job.id).state == "scheduled"


@pytest.mark.parametrize("value", ["{", '"' + "x" * 70_000 + '"'])
def test_a_value_that_is_no_json_or_too_large_is_refused(broker, operator, value):
    job = waiting_job(broker)

    html = text(operator.post(f"{PAGE}{job.id}/send/", {"queue": QUEUE, "event": "approved", "value": value}))

    assert "cannot be used as a value" in html
    assert claim(broker, worker=WORKER) == []


def test_spaces_in_the_name_of_an_event_are_kept(redis, broker, operator):
    job = waiting_job(broker, waits_for="0 0 1  approved ")

    operator.post(f"{PAGE}{job.id}/send/", {"event": " approved ", "token": "1", "value": "1"})

    assert redis.hexists(broker.keys.of(QUEUE).steps + job.id.encode(), "event 1  approved ")


def test_a_job_that_waits_for_another_event_by_now_gets_none(broker, operator):
    job = waiting_job(broker)

    answer = operator.post(f"{PAGE}{job.id}/send/", {"queue": QUEUE, "event": "paid", "value": "1"}, follow=True)

    assert "Nothing was done" in text(answer)
    assert claim(broker, worker=WORKER) == []
