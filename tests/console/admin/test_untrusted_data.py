"""Untrusted data of jobs is shown as text: escaped, readable and truncated."""

import json

import pytest

from django_rtq.databases.exactly_once import known_jobs
from tests.console.admin.conftest import MAIL, body, text, url_of
from tests.support.jobs import ERROR, QUEUE, claimed_job, dead_job, queued_job, settle

SCRIPT = "</pre><script>alert(1)</script>"
RTL, NUL, BELL = "\u202egnp.exe", "a\x00b", "\x07\x1b[2J"
DEEP = json.loads("[" * 95 + "]" * 95)


def dead(broker, *args, error=None, client="", **kwargs):
    """A dead letter with these arguments and this failure."""
    job = claimed_job(broker, "bad", worker="failing", body=body(*args, **kwargs), client=client)
    line = ERROR if error is None else json.dumps(error, separators=(",", ":"))
    settle(broker, "bury", job, worker="failing", error=line)
    return job


def page_of(client, job):
    answer = client.get(f"/admin/django_rtq/job/{job.id}/?queue={QUEUE}")
    assert answer.status_code == 200
    return text(answer)


@pytest.mark.parametrize("value", [SCRIPT, [SCRIPT], {SCRIPT: SCRIPT}, {"a": [{"b": SCRIPT}]}])
def test_tags_stay_text(value, broker, operator):
    html = page_of(operator, dead(broker, value))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_tags_stay_text_in_errors_names_and_clients(broker, operator):
    error = {
        "error": SCRIPT,
        "error_class": SCRIPT,
        "traceback": SCRIPT,
        "attempt": SCRIPT,
        "worker": SCRIPT,
        "at": SCRIPT,
    }
    job = dead(broker, 1, error=error, client=SCRIPT, task=SCRIPT)
    assert "<script>alert" not in page_of(operator, job)
    for url in (f"/admin/django_rtq/queue/{QUEUE}/?state=dead", "/admin/django_rtq/deadletter/"):
        answer = operator.get(url)
        assert answer.status_code == 200
        assert "<script>alert" not in text(answer)


def test_tags_in_a_filter_stay_text(jobs, operator):
    answer = operator.get(f"/admin/django_rtq/queue/{QUEUE}/", {"q": f'"><script>{SCRIPT}', "after": SCRIPT})
    assert "<script>alert" not in text(answer)
    assert '"><script>' not in text(answer)


@pytest.mark.parametrize("value", [RTL, NUL, BELL])
def test_what_does_not_print_is_written_out(value, broker, operator):
    html = page_of(operator, dead(broker, value, error={"error": value, "error_class": value}))
    assert not set(html) & {"\u202e", "\x00", "\x07", "\x1b"}


def test_a_huge_argument_is_cut(broker, operator):
    job = dead(broker, "x" * 1_000_000, "y", error={"error": "z" * 100_000, "traceback": "t" * 1_000_000})
    html = page_of(operator, job)
    assert len(html) < 120_000
    assert "…" in html


def test_deep_nesting_is_shown(broker, operator):
    assert "[" in page_of(operator, dead(broker, DEEP))


@pytest.mark.parametrize(
    "record",
    [
        "",
        "not json",
        "[1]",
        '{"task": 7, "args": {"a": 1}, "kwargs": [1]}',
        '{"task": null, "args": "abc"}',
        "\x00\xff",
    ],
)
def test_a_record_that_makes_no_sense_still_has_a_page(record, broker, operator):
    job = dead_job(broker, "odd", body=record)
    assert "dead" in page_of(operator, job)
    assert operator.get("/admin/django_rtq/deadletter/").status_code == 200
    assert operator.get(f"/admin/django_rtq/queue/{QUEUE}/?state=dead").status_code == 200
    assert operator.get(f"/admin/django_rtq/job/{job.id}/edit/").status_code == 200


@pytest.mark.parametrize(
    ("done", "total"), [('"a"', "1"), ("null", "null"), ("[1]", "0"), ("1", '"x"'), ("9" * 400, "1")]
)
def test_progress_that_makes_no_sense_is_left_out(done, total, broker, operator):
    job = claimed_job(broker, "odd", worker="w1", body=body(1))
    line = f'1700000000000 {{"done": {done}, "total": {total}, "text": "odd-progress"}}'
    broker.redis.execute_one(("HSET", broker.keys.of(QUEUE).progress, job.id, line))

    for html in (page_of(operator, job), text(operator.get("/admin/django_rtq/job/"))):
        assert job.id in html
        assert "odd-progress" not in html


@pytest.mark.parametrize(
    "odd", [{"task": 7}, {"task": None, "client": None}, {"client": ["x"]}, {"attempt": "x"}, {"failures": ["x"]}]
)
def test_an_outcome_that_makes_no_sense_still_has_a_page(odd, broker, operator):
    job = claimed_job(broker, "odd", worker="finishing", body=body(1))
    settle(broker, "ack", job, worker="finishing", outcome=json.dumps({"state": "succeeded", "task": MAIL, **odd}))

    for html in (page_of(operator, job), text(operator.get(f"{LIST}finished"))):
        assert job.id in html


GROUPS, LIST = "/admin/django_rtq/deadletter/", f"/admin/django_rtq/queue/{QUEUE}/?state="


def test_arguments_of_an_unknown_task_are_shown_to_those_who_may_edit_only(broker, viewer, operator):
    job = dead(broker, "anns-own-word", plain="seen", task="elsewhere.task")

    html = page_of(viewer, job) + text(viewer.get(GROUPS)) + text(viewer.get(f"{LIST}dead"))

    assert "anns-own-word" not in html
    assert "Hidden: the task is not registered in this process" in html
    assert "seen" in html
    html = page_of(operator, job)
    assert "anns-own-word" in html
    assert "Hidden: this process" not in html


@pytest.mark.parametrize(
    "query",
    [
        "state=nonsense",
        "after=" + "A" * 5000,
        "after=%ff%fe",
        "after=W10",
        "after=WyJhIiwgImIiXQ",
        "q=id:%00",
        "span=0",
    ],
)
def test_nonsense_in_addresses_is_left_out(query, jobs, operator):
    for page in (f"queue/{QUEUE}/", "queue/", "deadletter/"):
        assert operator.get(f"/admin/django_rtq/{page}?{query}").status_code == 200


@pytest.mark.parametrize("until", ["", "-1", "abc", "1e9", "9" * 40, "٣"])
def test_nonsense_for_the_moment_of_a_sweep_asks_again_and_does_nothing(until, jobs, operator, readers):
    operator.post("/admin/django_rtq/job/bulk/discard/", {"q": f"queue:{QUEUE}", "until_ms": until})
    assert readers.queues.get(QUEUE).dead == 1


@pytest.mark.parametrize("name", ["no such queue", "%00", "a:b", "{x}", "*", "a" * 101])
def test_what_no_queue_can_be_called_is_not_found(name, operator, redis):
    assert operator.get(f"/admin/django_rtq/queue/{name}/").status_code == 404
    assert operator.post(f"/admin/django_rtq/queue/{name}/pause/").status_code == 404


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_an_action_leads_nowhere_else(target, jobs, operator):
    answer = operator.post(url_of("job_bulk_requeue"), {"id": jobs.dead.id, "next": target})
    assert answer["Location"].startswith("/admin/django_rtq/job/")


def test_many_clients_with_odd_names_are_listed(broker, operator):
    for number, name in enumerate(["", " ", SCRIPT, RTL, "日本", "a" * 200]):
        queued_job(broker, f"job{number}", client=name)
    answer = operator.get(f"/admin/django_rtq/queue/{QUEUE}/")
    assert answer.status_code == 200
    assert "<script>alert" not in text(answer)
    assert "\u202e" not in text(answer)


@pytest.mark.parametrize("page", ["queue", "job", "worker", "deadletter", "registeredtask", "client"])
def test_what_is_no_queue_name_is_skipped_in_the_list_of_queues(page, redis, broker, readers, rtq, operator):
    job = queued_job(broker)
    redis.sadd(broker.keys.queues, "bad name!", b"\xff", "")

    assert operator.get(f"/admin/django_rtq/{page}/").status_code == 200
    assert readers.queues.names() == [QUEUE]
    assert readers.find(job.id).queue == QUEUE
    assert rtq.tasks["ship"].pause() == [QUEUE]
    assert known_jobs(broker, [job.id]) == {job.id}
