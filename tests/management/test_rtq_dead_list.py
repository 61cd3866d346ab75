"""rtq_dead list: what it finds, and what it tells."""

from datetime import datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from django_rtq import task
from django_rtq.redaction import HIDDEN
from django_rtq.tasks import registry
from tests.management.commands import dead_letter, dead_letters, failure, run
from tests.support.jobs import QUEUE, new_job, queued_job, settlement
from tests.support.single_steps import promote


def send_mail(*args, **kwargs):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _task(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {"shop.tasks.send_mail": task(send_mail)})


def ids(ran):
    return [letter["id"] for letter in ran.json]


def test_json_tells_all_of_a_dead_letter(broker):
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    args = [moment, Decimal("1.20"), time(3, 4, tzinfo=timezone.utc), timedelta(hours=1), "ä"]
    job_id = dead_letter(broker, client="acme", args=args, kwargs={"n": 1})

    (letter,) = run("rtq_dead", "list", "--json").json

    died_at = datetime.fromisoformat(letter.pop("died_at"))
    assert abs(datetime.now(timezone.utc) - died_at) < timedelta(seconds=10)
    assert letter == {
        "id": job_id,
        "task": "shop.tasks.send_mail",
        "queue": QUEUE,
        "client": "acme",
        "args": ["2026-01-02T03:04:05Z", "1.20", "03:04:00+00:00", "P0DT01H00M00S", "ä"],
        "kwargs": {"n": 1},
        "attempts": 1,
        "error_class": "shop.errors.OutOfOrder",
        "error": "it broke",
        "traceback": "Traceback (most recent call last):\n  here",
    }


def test_secrets_are_hidden_in_all_that_is_printed(broker):
    line = failure(error="no s3cret-word")
    dead_letter(broker, args=["ann", "seen"], kwargs={"token": "s3cret-word", "n": 1}, line=line)

    ran = run("rtq_dead", "list", "--json")
    table = run("rtq_dead", "list", verbosity=2)

    (letter,) = ran.json
    assert letter["args"] == ["ann", "seen"]
    assert letter["kwargs"] == {"token": HIDDEN, "n": 1}
    assert letter["error"] == f"no {HIDDEN}"
    assert f"OutOfOrder: no {HIDDEN}" in table.out
    assert "s3cret" not in ran.out + table.out


def test_arguments_by_place_of_a_task_that_is_unknown_are_hidden(broker):
    dead_letter(broker, task="elsewhere.task", args=["anns-own-word", 1], line=failure(error="anns-own-word"))

    (letter,) = run("rtq_dead", "list", "--json").json

    assert (letter["args"], letter["error"]) == ([HIDDEN, HIDDEN], HIDDEN)


def test_the_newest_failure_counts_and_all_runs_are_attempts(broker):
    job = new_job()
    broker.enqueue(QUEUE, [job])
    for worker, line in (("w1", failure("ValueError", "first")), ("w2", failure("TypeError", "second"))):
        broker.sign_on([QUEUE], worker)
        broker.claim(worker, [QUEUE], 1)
        verb = "retry" if worker == "w1" else "bury"
        told = settlement(verb, job, wait_ms=0)
        getattr(told, verb)[-1] = line
        broker.settle(worker, QUEUE, told)
        promote(broker, QUEUE)

    (letter,) = run("rtq_dead", "list", "--json").json

    assert (letter["attempts"], letter["error_class"], letter["error"]) == (2, "TypeError", "second")


def test_the_newest_of_all_queues_comes_first(three):
    assert ids(run("rtq_dead", "list", "--json")) == three[::-1]


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (["--queue", QUEUE], [2, 0]),
        (["--task", "send_mail"], [0]),
        (["--task", "shop.tasks.report"], [1]),
        (["--task", "mail"], []),
        (["--error", "ValueError"], [2, 1]),
        (["--error", "shop.errors.OutOfOrder"], [0]),
        (["--error", "OutOfOrder"], [0]),
        (["--error", "Error"], []),
        (["--error", "no "], [1, 0]),
        (["--error", "no ", "--task", "report"], [1]),
        (["--limit", "2"], [2, 1]),
        (["--error", "no ", "--limit", "1"], [1]),
    ],
)
def test_filters_take_what_fits_them_all(three, options, places):
    assert ids(run("rtq_dead", "list", "--json", *options)) == [three[place] for place in places]


def test_letters_can_be_named(three):
    assert ids(run("rtq_dead", "list", three[1], three[0], "--json")) == [three[1], three[0]]


def test_letters_that_are_none_are_told(broker, three):
    alive = queued_job(broker).id

    ran = run("rtq_dead", "list", three[0], alive, "unknown")

    assert ran.out.splitlines()[1].startswith(three[0])
    assert ran.err.splitlines() == [
        f"Job {alive}: is not a dead letter: it is queued, in queue default.",
        "Job unknown: not found. Unknown id, or its result has expired.",
    ]
    assert (ran.code, ran.error) == (1, "2 of 3 ids could not be shown.")


def test_the_table_shows_each_on_one_safe_line(broker):
    evil = "first\nsecond \x1b[31mred\x07 " + "x" * 1000
    job_id = dead_letter(broker, client="a\tb", line=failure(error=evil))

    heading, row = run("rtq_dead", "list", "--no-color").out.splitlines()

    assert heading.split() == ["ID", "QUEUE", "TASK", "CLIENT", "ATTEMPTS", "DIED", "ERROR"]
    assert row.startswith(f"{job_id}  default  shop.tasks.send_mail  a\\tb ")
    assert row.endswith("xxx...")
    assert row[heading.index("ERROR") :].startswith("OutOfOrder: first\\nsecond \\x1b[31mred\\x07 xxx")
    assert evil[-900:] in run("rtq_dead", "list", "-v", "2").out


def test_the_table_ends_at_a_limit_and_says_so(broker):
    dead_letters(broker, 51)

    assert run("rtq_dead", "list").out.endswith("\n\nOnly the newest 50 are shown: see --limit and --all.\n")
    assert len(run("rtq_dead", "list").out.splitlines()) == 1 + 50 + 2
    assert len(run("rtq_dead", "list", "--limit", "51").out.splitlines()) == 1 + 51
    assert len(run("rtq_dead", "list", "--all").out.splitlines()) == 1 + 51
    assert len(run("rtq_dead", "list", "--json").json) == 51


def test_where_there_is_none_it_says_so(broker):
    assert run("rtq_dead", "list").out == "There are no dead letters.\n"
    assert run("rtq_dead", "list", "--task", "x").out == "No dead letter matches.\n"
    assert run("rtq_dead", "list", "--json").json == []


@pytest.mark.parametrize("line", ["not json", "3", '"text"', "[]", '{"error": null, "error_class": 5}'])
def test_a_failure_that_cannot_be_read_hides_nothing(broker, line):
    job_id = dead_letter(broker, line=line)

    assert ids(run("rtq_dead", "list", "--json")) == [job_id]
    assert job_id in run("rtq_dead", "list").out
