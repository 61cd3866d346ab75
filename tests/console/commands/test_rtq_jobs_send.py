"""rtq_jobs send, and what show says of a job that remembers."""

import pytest

from tests.protocol.model.step_calls import holder, send_event, suspend, write_step
from tests.support.commands import run
from tests.support.jobs import QUEUE, WORKER, claim, claimed_job, finished_job

TEN_YEARS_MS = 315_360_000_000


def waiting_job(broker, event="", **options):
    job = claimed_job(broker, "a")
    write_step(broker, holder(broker, job), "step charge")
    if event:
        send_event(broker, job, event, value='{"x":1}')
    suspend(broker, job, **options)
    return job


def test_a_job_gets_its_event(redis, broker):
    job = waiting_job(broker)

    ran = run("rtq_jobs", "send", job.id, "approved", '{"by": "eve"}')

    assert (ran.code, ran.out) == (0, f"Sent event approved to job {job.id}.\n")
    fields = redis.hgetall(broker.keys.of(QUEUE).steps + job.id.encode())
    assert fields[b"event 1 approved"].endswith(b' {"by":"eve"}')
    assert claim(broker, worker=WORKER) == [job.id]


def test_without_a_value_it_is_null_and_json_is_printed(redis, broker):
    job = waiting_job(broker)

    assert run("rtq_jobs", "send", job.id, "approved", "--json").json == {"sent": job.id}
    assert redis.hget(broker.keys.of(QUEUE).steps + job.id.encode(), "event 1 approved").endswith(b" null")


def test_what_cannot_be_sent_is_said(broker):
    over = finished_job(broker)

    wrong = run("rtq_jobs", "send", over.id, "approved", "yes")
    assert (wrong.code, wrong.error[:16]) == (64, "'yes' is no JSON")
    for job_id, words in ((over.id, "is over: it gets no event"), ("nobody", "was not found")):
        ran = run("rtq_jobs", "send", job_id, "approved")
        assert ran.code == 1
        assert words in ran.error
    late = waiting_job(broker, ms=0)
    assert "has gone on without event 'approved'" in run("rtq_jobs", "send", late.id, "approved").error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "It waits for event approved, for "),
        ({"ms": TEN_YEARS_MS}, "It waits for event approved."),
        ({"waits_for": "1 0"}, "It sleeps for "),
    ],
)
def test_show_says_what_it_waits_for_and_what_it_has_done(broker, options, words):
    job = waiting_job(broker, event="other", **options)

    shown = run("rtq_jobs", "show", job.id).out

    assert words in shown
    assert "State:          scheduled" in shown
    assert 'charge (2 ms): {"id": 7}' in shown
    (told,) = run("rtq_jobs", "show", job.id, "--json").json
    assert (told["event"], told["is_asleep"]) == ("" if "waits_for" in options else "approved", "waits_for" in options)
    assert [(step["name"], step["seconds"], step["result"]) for step in told["steps"]] == [
        ("charge", 0.0015, {"id": 7}),
        ("other", None, {"x": 1}),
    ]
