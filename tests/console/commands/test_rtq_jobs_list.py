"""rtq_jobs list and show: what they find, and what they print."""

import io
import re
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.utils.translation import override

from django_rtq import task
from django_rtq.console.commands import rtq_jobs
from django_rtq.console.log_lines import write_line
from django_rtq.console.output import as_json
from django_rtq.console.redaction import HIDDEN
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks import registry
from tests.support.commands import dead_letter, dead_letters, failure, run
from tests.support.jobs import (
    QUEUE,
    SEEDS,
    claimed_job,
    finished_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
)


def send_mail(*args, **kwargs):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _task(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {"shop.tasks.send_mail": task(send_mail)})


def ids(ran):
    return [letter["id"] for letter in ran.json["jobs"]]


def test_json_tells_all_of_a_dead_letter(broker):
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    args = [moment, Decimal("1.20"), time(3, 4, tzinfo=timezone.utc), timedelta(hours=1), "ä"]
    job_id = dead_letter(broker, client="acme", args=args, kwargs={"n": 1})

    (letter,) = run("rtq_jobs", "list", "--json").json["jobs"]

    died_at = datetime.fromisoformat(letter.pop("died_at"))
    assert abs(datetime.now(timezone.utc) - died_at) < timedelta(seconds=10)
    assert datetime.fromisoformat(letter.pop("time")) == died_at
    times = ("made_at", "ready_at", "due_at", "expires_at", "claimed_at", "finished_at")
    assert [letter.pop(name) is None for name in times] == [True, False, True, True, True, True]
    assert letter == {
        "id": job_id,
        "state": "dead",
        "priority": 0,
        "worker": "",
        "task": "shop.tasks.send_mail",
        "queue": QUEUE,
        "client": "acme",
        "args": ["2026-01-02T03:04:05Z", "1.20", "03:04:00+00:00", "P0DT01H00M00S", "ä"],
        "kwargs": {"n": 1},
        "headers": {},
        "attempts": 1,
        "progress": None,
        "error_class": "shop.errors.OutOfOrder",
        "error": "it broke",
        "traceback": "Traceback (most recent call last):\n  here",
    }


def test_json_is_written_job_by_job(broker, monkeypatch):
    out, written = io.StringIO(), []

    def found(*selected, **options):
        for number in range(3):
            written.append(out.getvalue().count('"id"'))
            yield JobDetails(id=f"{number}", queue=QUEUE, state=JobState.QUEUED), str

    monkeypatch.setattr(rtq_jobs, "find_jobs", found)
    call_command("rtq_jobs", "list", "--json", stdout=out)

    assert written == [0, 1, 2]


def test_secrets_are_hidden_in_all_that_is_printed(broker):
    dead_letter(broker, args=["ann", "seen"], kwargs={"token": "s3cret-word", "n": 1})

    ran = run("rtq_jobs", "list", "--json")
    table = run("rtq_jobs", "list", verbosity=2)

    (letter,) = ran.json["jobs"]
    assert letter["args"] == ["ann", "seen"]
    assert letter["kwargs"] == {"token": HIDDEN, "n": 1}
    assert "s3cret" not in ran.out + table.out


def test_jobs_of_any_state_can_be_named(broker, three):
    alive = queued_job(broker).id

    ran = run("rtq_jobs", "list", three[0], alive, "unknown")

    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == [three[0], alive]
    assert ran.err.splitlines() == ["Job unknown was not found: its id is unknown, or its result has expired."]
    assert (ran.code, ran.error) == (1, "1 of 3 ids could not be shown.")
    assert ids(run("rtq_jobs", "list", alive, three[0], "--json")) == [alive, three[0]]


@pytest.mark.parametrize("call", ["list {}", "show {}", "send {} approved"])
def test_a_job_of_another_queue_is_not_found(broker, call):
    job = queued_job(broker)

    ran = run("rtq_jobs", *call.format(job.id).split(), "--queue", "bulk")

    assert (ran.code, job.id in ran.err + ran.error, ran.out.strip()) == (1, True, "")


def test_the_table_shows_each_on_one_safe_line(broker):
    evil = "first\nsecond \x1b[31mred\x07 " + "x" * 1000
    job_id = dead_letter(broker, client="a\tb", line=failure(error=evil))

    heading, row = run("rtq_jobs", "list", "--no-color").out.splitlines()

    assert heading.split() == ["ID", "TASK", "CLIENT", "QUEUE", "STATE", "ATTEMPTS", "TIME", "ERROR"]
    assert row.startswith(f"{job_id}  shop.tasks.send_mail  a\\tb    default  dead ")
    assert row.endswith("xxx...")
    assert row[heading.index("ERROR") :].startswith("OutOfOrder: first\\nsecond \\x1b[31mred\\x07 xxx")
    assert re.search(r"  [\d.]+ s ago  ", row)
    in_full = run("rtq_jobs", "list", "-v", "2").out
    assert evil[-900:] in in_full
    assert re.search(r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", in_full)


def test_the_table_ends_at_a_limit_and_says_so(broker):
    dead_letters(broker, 51)

    assert run("rtq_jobs", "list").out.endswith("\n\nOnly the first 50 are shown: see --limit and --all.\n")
    assert len(run("rtq_jobs", "list").out.splitlines()) == 1 + 50 + 2
    assert len(run("rtq_jobs", "list", "--limit", "51").out.splitlines()) == 1 + 51
    assert len(run("rtq_jobs", "list", "--all").out.splitlines()) == 1 + 51
    assert len(ids(run("rtq_jobs", "list", "--json"))) == 51


def test_a_list_goes_on_behind_its_cursor_and_misses_nothing_whatever_happens_meanwhile(broker, readers):
    made = [dead_letter(broker, queue=queue) for queue in (QUEUE, "bulk", "low") for _ in range(4)]
    made += [claimed_job(broker).id, *(retrying_job(broker).id for _ in range(2)), scheduled_job(broker).id]
    made += [queued_job(broker, client=client, queue=queue).id for queue in ("low", QUEUE) for client in "aab"]
    for queue in (QUEUE, "bulk", "low"):  # several died at once
        ids_of = broker.redis.execute_one(("ZRANGE", broker.keys.of(queue).dead, 0, -1))
        for number, job_id in enumerate(ids_of):
            broker.redis.execute_one(("ZADD", broker.keys.of(queue).dead, 1_700_000_000_000 + number // 3, job_id))
    whole = ids(run("rtq_jobs", "list", "--json"))
    listed, cursor = [], ""

    while cursor is not None:
        page = run("rtq_jobs", "list", "--json", "--limit", "2", *(["--after", cursor] if cursor else []))
        listed += ids(page)
        cursor = page.json["next"]
        dead_letter(broker, queue="bulk")  # newer than all
        readers.actions.done("discard", "low", listed)

    assert [job_id for job_id in listed if job_id in made] == whole
    assert sorted(whole) == sorted(made)


def test_where_there_is_none_it_says_so(broker):
    assert run("rtq_jobs", "list").out == "There are no jobs.\n"
    assert run("rtq_jobs", "list", "--task", "x").out == "No job matches.\n"
    assert run("rtq_jobs", "list", "--json").json == {"jobs": [], "next": None}


@pytest.mark.parametrize("line", ["not json", "3", '"text"', "[]", '{"error": null, "error_class": 5}'])
def test_a_failure_that_cannot_be_read_hides_nothing(broker, line):
    job_id = dead_letter(broker, line=line)

    assert ids(run("rtq_jobs", "list", "--json")) == [job_id]
    assert job_id in run("rtq_jobs", "list").out


@pytest.fixture
def all_states(broker):
    """A job in each state, by the name of its list."""
    clients = dict.fromkeys(("dead", "scheduled", "queued"), "acme")
    return {state: seed(broker, client=clients.get(state, "")).id for state, seed in SEEDS.items()}


def test_all_but_finished_jobs_are_listed_the_running_ones_first(all_states):
    found = run("rtq_jobs", "list", "--json").json["jobs"]

    assert [job["state"] for job in found] == ["running", "retrying", "queued", "scheduled", "dead"]
    assert [job["id"] for job in found] == [all_states[job["state"]] for job in found]


def test_jobs_of_a_client_and_since_a_time_can_be_listed(all_states):
    assert ids(run("rtq_jobs", "list", "--client", "acme", "--json")) == [
        all_states[state] for state in ("queued", "scheduled", "dead")
    ]
    assert ids(run("rtq_jobs", "list", "--state", "queued,dead", "--since", "1h", "--json")) == [
        all_states["queued"],
        all_states["dead"],
    ]
    assert ids(run("rtq_jobs", "list", "--state", "queued,dead", "--since", "2100-01-01", "--json")) == []


def test_show_prints_all_of_a_job(broker):
    job_id = dead_letter(broker, client="acme", args=["ä"], kwargs={"token": "s3cret"}, queue="bulk")

    ran = run("rtq_jobs", "show", job_id)

    facts = dict(re.findall(r"^(\w[\w ]*): +(.*)$", ran.out, re.MULTILINE))
    assert (facts["Id"], facts["State"], facts["Queue"], facts["Client"]) == (job_id, "dead", "bulk", "acme")
    assert facts["Kwargs"] == f'{{"token": "{HIDDEN}"}}'
    assert re.search(
        r"^Attempt 1 failed, .*: shop.errors.OutOfOrder: it broke\n  Traceback .*\n    here$", ran.out, re.M
    )
    assert "s3cret" not in ran.out


def test_show_prints_json_with_all_failures_and_the_result(broker):
    dead, finished = dead_letter(broker), finished_job(broker).id

    letter, done = run("rtq_jobs", "show", dead, finished, "--json").json

    assert [(each["error_class"], each["version"]) for each in letter["failures"]] == [("shop.errors.OutOfOrder", "")]
    assert (done["id"], done["state"], done["failures"]) == (finished, "succeeded", [])
    assert (letter["args"], done["args"]) == ([], None)  # which were not kept


@pytest.mark.parametrize("is_lost", [True, False])
def test_show_says_that_a_result_is_lost(broker, is_lost):
    job = claimed_job(broker)
    settle(broker, "ack", job, outcome=f'{{"state":"succeeded","is_lost":{as_json(is_lost)}}}')

    assert ("Is result lost: true" in run("rtq_jobs", "show", job.id).out) is is_lost
    assert run("rtq_jobs", "show", job.id, "--json").json[0]["is_result_lost"] is is_lost


def test_show_prints_what_a_job_logged(broker):
    job_id = dead_letter(broker, args=["x"], kwargs={"token": "s3cret-9"})
    lines = [
        write_line(1, 1_800_000_000_000, "INFO", "shop", "the token is s3cret-9"),
        write_line(2, 1_800_000_000_000, "ERROR", "shop\x1b", "failed", "Traceback:\n  last\x07"),
    ]
    for line in lines:
        broker.redis.execute_one(("RPUSH", broker.keys.of("default").log_of(job_id), f"t-1 {line}"))

    printed, (letter,) = run("rtq_jobs", "show", job_id).out, run("rtq_jobs", "show", job_id, "--json").json

    log = re.sub(r"\d{4}-\S+ \S+ ", "", printed.split("Log:\n")[1]).splitlines()
    assert log == [
        "  INFO shop: the token is s3cret-9",
        "  -- attempt 2 --",
        "  ERROR shop\\x1b: failed",
        "    Traceback:",
        "      last\\x07",
    ]
    first = {"attempt": 1, "level": "INFO", "logger": "shop", "text": "the token is s3cret-9"}
    assert letter["log"][0].items() >= first.items()
    assert letter["log"][0]["at"] == "2027-01-15T08:00:00+00:00"


def test_show_says_why_a_job_waits_also_where_users_read_another_language(broker, rtq):
    job = queued_job(broker, client="acme")
    rtq.clients["acme"].pause(QUEUE, by="eve")

    with override("pt-br"):
        ran = run("rtq_jobs", "show", job.id)

    (line,) = [line for line in ran.out.splitlines() if line.startswith("Waiting reason:")]
    assert "Its client was paused by eve, " in line
    assert "No worker serves this queue." in line
    assert (
        run("rtq_jobs", "show", job.id, "--json").json[0]["waiting_reason"].startswith("Its client was paused by eve, ")
    )


def test_jobs_are_found_by_a_query(broker):
    job_id = dead_letter(broker, client="acme", kwargs={"note": "in a hurry", "password": "hunter2hunter2"})
    queued_job(broker, body='{"task":"shop.tasks.send_mail","kwargs":{"note":"in a hurry"}}', queue="low")
    dead_letter(broker, client="acme", kwargs={"note": "no hurry"})

    assert ids(run("rtq_jobs", "list", "--json", "--query", "state:dead a hurry")) == [job_id]
    assert len(ids(run("rtq_jobs", "list", "--json", "--query", "a hurry"))) == 2
    assert len(ids(run("rtq_jobs", "list", "--json", "--limit", "1", "--query", "a hurry"))) == 1
    assert run("rtq_jobs", "list", "--query", "hunter2hunter2").out == "No job matches.\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--state", "late"], "state:late: there is no such state; the states are queued, scheduled, running, "),
        (
            ["--since", "yesterday"],
            "since:yesterday: this is not a time; write for example 90s, 30min, 2h, 7d or 2026-",
        ),
        (["--limit", "9" * 30], "is not a whole number from 1 to 1,000,000,000"),
        (["--query", "stat:dead"], "stat:dead: there is no such field"),
        (["--query", "queue:nowhere"], "No queue 'nowhere' is declared, or has been used yet."),
        (["--query", "task:a", "--task", "mail"], "task:mail: task is given twice."),
        (["x", "--query", "dead"], "Give either ids or --query"),
        (["x", "--after", "W10"], "Give either ids or --after"),
        (["--after", "W10"], "--after: 'W10' is not a cursor of this list."),
        (["--query", ""], "--query is empty"),
        (["--query", " "], "--query is empty"),
        (["--query", "\udcff"], "is not valid UTF-8"),
        (["--task", "\udcff"], "is not valid UTF-8"),
        (["--error", "\udcff"], "is not valid UTF-8"),
        (["--client", "\udcff"], "is not the name of a client"),
        (["--client", "x" * 201], "is not the name of a client"),
    ],
)
def test_values_that_cannot_be_used_are_refused(broker, options, problem):
    dead_letter(broker)

    ran = run("rtq_jobs", "list", *options)

    assert (ran.out, ran.code > 0) == ("", True)
    assert problem in ran.error
