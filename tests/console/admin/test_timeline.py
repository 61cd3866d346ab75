"""What became of a job, and when."""

import re
from datetime import datetime, timedelta, timezone
from html import unescape

import pytest
from django.utils import translation

from django_rtq.console.admin.pages.jobs import timeline
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.testing import drain
from tests.app import batch_tasks
from tests.console.admin.conftest import MAIL, body, text
from tests.support.commands import run
from tests.support.jobs import QUEUE, claimed_job, settle

MADE = datetime(2026, 11, 22, 10, tzinfo=timezone.utc)


def at(seconds):
    return MADE + timedelta(seconds=seconds)


def failure(ended, seconds, **more):
    return {"at": at(ended).timestamp() * 1000, "seconds": seconds, **more}


@pytest.mark.parametrize(
    ("state", "fields", "told"),
    [
        ("queued", {"ready_at": at(0.5)}, ["enqueued", "queued"]),
        ("queued", {"ready_at": at(60)}, ["enqueued", "scheduled start", "queued"]),
        ("scheduled", {"ready_at": at(900), "due_at": at(900)}, ["enqueued", "due"]),
        ("scheduled", {"is_held": True}, ["enqueued", "its task is paused"]),
        ("running", {"claimed_at": at(30), "attempt": 1}, ["enqueued", "running · Attempt 1 · waited 30 s"]),
        (
            "succeeded",
            {"claimed_at": at(30), "finished_at": at(50), "seconds": 20.0, "worker": "w1", "attempt": 1},
            ["enqueued", "succeeded · Attempt 1 · waited 30 s · ran 20 s · w1"],
        ),
        (
            "succeeded",
            {"finished_at": at(50), "seconds": 20.0, "attempt": 2, "worker": "w1", "version": "v44"},
            ["enqueued", "succeeded · Attempt 2 · started 30 s after it was enqueued · ran 20 s · w1 · Version: v44"],
        ),
        (
            "dead",
            {"errors": [failure(20, 5, attempt=1, worker="w1", version="v44")], "died_at": at(20)},
            ["enqueued", "attempt 1 failed · waited 15 s · ran 5.0 s · w1 · Version: v44", "dead"],
        ),
        (
            "retrying",
            {"errors": [failure(20, 5), failure(60, 10)], "due_at": at(500)},
            [
                "enqueued",
                "attempt ? failed · waited 15 s · ran 5.0 s",
                "attempt ? failed · waited 30 s · ran 10 s",
                "next attempt due",
            ],
        ),
        # requeued
        (
            "dead",
            {"errors": [failure(20, 5), failure(70, 10)], "ready_at": at(50), "died_at": at(70)},
            [
                "enqueued",
                "attempt ? failed · waited 15 s · ran 5.0 s",
                "requeued · by ada",
                "attempt ? failed · waited 10 s · ran 10 s",
                "dead",
            ],
        ),
        (
            "queued",
            {"errors": [failure(20, 5)], "ready_at": at(50)},
            ["enqueued", "attempt ? failed · waited 15 s · ran 5.0 s", "requeued · by ada", "queued"],
        ),
        ("dead", {"made_at": None, "errors": [{"at": "x"}, {}]}, ["attempt ? failed", "attempt ? failed", "dead"]),
    ],
)
def test_the_newest_is_told_first(state, fields, told):
    job = JobDetails(id="j", queue="q", state=JobState(state), **{"made_at": MADE, **fields})
    found = [" · ".join([event.title, *event.parts]) for event in timeline(job, "ada")]
    assert found == told[::-1]


def test_a_version_has_the_colon_of_the_language():
    job = JobDetails(id="x", queue=QUEUE, state=JobState.SUCCEEDED, finished_at=at(1), attempt=1, version="v44")
    with translation.override("zh-hans"):
        assert timeline(job, "")[0].parts[-1] == "版本\uff1av44"


@pytest.mark.parametrize("query", ["", f"queue:{QUEUE} state:dead", f"task:={MAIL}", "client:bakery"])
def test_a_person_who_requeued_a_job_is_named(broker, operator, query):
    made = claimed_job(broker, worker="failing", client="bakery", body=body(1))
    settle(broker, "bury", made, worker="failing", error='{"at":1,"attempt":1,"error":"it broke"}')
    which = {"q": query, "until_ms": 10**15} if query else {"id": made.id}
    operator.post("/admin/django_rtq/job/bulk/requeue/", which)
    assert "by user-0" in text(operator.get(f"/admin/django_rtq/job/{made.id}/"))


@pytest.mark.parametrize("number", [1, 3])
def test_a_failure_says_how_many_jobs_had_the_call_and_leads_to_them(broker, viewer, number):
    jobs = [batch_tasks.returns.delay(value=[1, 2]) for _ in range(number)]
    drain(raise_errors=False)

    html = text(viewer.get(f"/admin/django_rtq/job/{jobs[0].id}/"))

    links = re.findall(r'href="([^"]+)">call of 3</a>', html)
    assert len(links) == (number > 1)
    for link in links:
        assert "task%3A%3D" in link  # none of a task whose name ends alike
        listed = text(viewer.get(unescape(link)))
        assert all(job.id in listed for job in jobs)
    assert ("call of" in run("rtq_jobs", "show", jobs[0].id).out) is (number > 1)
