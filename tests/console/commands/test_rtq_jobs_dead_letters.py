"""rtq_jobs requeue and discard: which dead letters they take."""

import pytest

from django_rtq.console.reading.actions import Actions
from django_rtq.exceptions import BrokerUnavailable
from tests.support.commands import (
    dead_letter,
    dead_letters,
    run,
    sit_at_terminal,
)
from tests.support.jobs import QUEUE, dead_job, held_job, queued_job, settle, unique_job

OUTAGE = "Redis did not answer in time: "
RTQ_OPTIONS = {"QUEUES": {"bulk": {}}}


def dead_ids(readers):
    return {job.id for queue in readers.queues.names() for job, _ in readers.search([(queue, "dead")]).each()}


def break_after(monkeypatch, steps, error):
    """Let an action work so many times, and then fail."""
    act, calls = Actions.act, []

    def act_or_fail(self, verb, queue, job_ids, how):
        calls.extend([len(job_ids)] if job_ids else [])
        if len(calls) > steps:
            raise error
        return act(self, verb, queue, job_ids, how)

    monkeypatch.setattr(Actions, "act", act_or_fail)
    return calls


# requeue and discard


def test_a_unique_one_stays_dead_while_another_like_it_lives(broker, readers):
    job = held_job(broker)
    settle(broker, "bury", job)
    broker.enqueue(QUEUE, [unique_job()])

    ran = run("rtq_jobs", "requeue", job.id)

    assert (ran.code, ran.error) == (1, "1 of 1 id could not be requeued.")
    assert ran.err.startswith(f"Job {job.id} is still dead: ")
    assert dead_ids(readers) == {job.id}


@pytest.mark.parametrize(("verb", "did"), [("requeue", "requeued"), ("discard", "discarded")])
def test_ids_that_are_not_dead_are_told_and_the_rest_is_done(broker, three, readers, verb, did):
    alive = queued_job(broker).id

    ran = run("rtq_jobs", verb, alive, three[2], "unknown", "--json")

    assert ran.json == {did: 1, "ids": [three[2]]}
    assert ran.err.splitlines() == [
        f"Job {alive} is not a dead letter: it is queued, in queue default.",
        "Job unknown was not found: its id is unknown, or its result has expired.",
    ]
    assert (ran.code, ran.error) == (1, f"2 of 3 ids could not be {did}.")
    assert dead_ids(readers) == set(three[:2])


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (["--all"], [2, 1, 0]),
        (["--error", "no "], [1, 0]),
        (["--queue", "bulk"], [1]),
        (["--all", "--limit", "2"], [2, 1]),
    ],
)
@pytest.mark.parametrize(("verb", "did"), [("requeue", "requeued"), ("discard", "discarded")])
def test_a_sweep_takes_what_fits_and_nothing_else(three, readers, verb, did, options, taken):
    silent = ["--no-input"] if verb == "discard" else []

    ran = run("rtq_jobs", verb, *options, *silent, "--json")

    assert ran.json[did] == len(taken)
    assert set(ran.json["ids"]) == {three[place] for place in taken}
    assert dead_ids(readers) == set(three) - set(ran.json["ids"])


@pytest.mark.parametrize("verb", ["requeue", "discard"])
@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ([], "Which jobs?", 64),
        (["--limit", "5"], "Which jobs?", 64),
        (["some-id", "--all"], "either ids or --all", 64),
        (["some-id", "--task", "x"], "either ids or --task", 64),
        (["some-id", "--limit", "1"], "either ids or --limit", 64),
        (["--task", ""], "--task is empty", 64),
        (["--queue", "blk"], "Did you mean 'bulk'?", 1),
        (["--query", "queue:blk"], "Did you mean 'bulk'?", 1),
        (["--query", "stat:dead"], "stat:dead: there is no such field", 64),
        (["--query", "state:queued"], " is for jobs that are dead.", 64),
        (["--all", "--limit", "0"], "is not a whole number from 1 to", 1),  # 64 in a shell: Django has argparse say so
    ],
)
def test_what_is_not_clear_is_refused(three, readers, monkeypatch, verb, options, message, code):
    sit_at_terminal(monkeypatch, "yes")

    ran = run("rtq_jobs", verb, *options)

    assert (ran.code, ran.out) == (code, "")
    assert message in ran.error
    assert dead_ids(readers) == set(three)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(BrokerUnavailable(OUTAGE), 1, OUTAGE), (KeyboardInterrupt(), 130, "Stopped.")],
)
def test_a_sweep_that_stops_says_what_was_done(broker, readers, monkeypatch, error, code, message):
    dead_letters(broker, 250)
    break_after(monkeypatch, 1, error)

    ran = run("rtq_jobs", "discard", "--all", "--no-input", "--json")

    assert (ran.code, ran.json["discarded"], len(ran.json["ids"])) == (code, 100, 100)
    assert ran.error == (f"{message} 100 dead letters were discarded. Run this again for the rest.")
    assert len(dead_ids(readers)) == 150


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 0), (1, 1), (2, 4)])
def test_it_says_as_much_as_it_is_asked_to(three, verbosity, lines):
    assert len(run("rtq_jobs", "requeue", "--all", verbosity=verbosity).out.splitlines()) == lines


# asking


def test_discarding_by_filter_asks_with_the_exact_number(three, readers, monkeypatch):
    sit_at_terminal(monkeypatch, "yes")

    ran = run("rtq_jobs", "discard", "--error", "ValueError")

    assert ran.err == (
        "error:ValueError: Discard 2 dead letters? Their arguments and failures are deleted. This cannot be undone. "
        "Type 'yes' to continue: "
    )
    assert dead_ids(readers) == {three[0]}


def test_where_nobody_can_answer_discarding_by_filter_does_nothing(three, readers):
    ran = run("rtq_jobs", "discard", "--all")

    assert (ran.code, "--no-input" in ran.error) == (1, True)
    assert dead_ids(readers) == set(three)


def test_what_dies_while_a_person_thinks_is_not_thrown_away(broker, three, readers, monkeypatch):
    sit_at_terminal(monkeypatch, "yes")
    late = []
    monkeypatch.setattr("builtins.input", lambda: late.append(dead_letter(broker)) or "yes")

    run("rtq_jobs", "discard", "--all")

    assert dead_ids(readers) == set(late)


# looking first, slowly, and back again


@pytest.mark.parametrize(
    ("verb", "options", "text"),
    [
        ("discard", ["--all"], "Would discard 3 dead letters (bulk 1, default 2). Nothing was changed.\n"),
        ("requeue", ["--query", "queue:bulk"], "Would requeue 1 dead letter (bulk 1). Nothing was changed.\n"),
        ("discard", ["--all", "--limit", "1"], "Would discard 1 dead letter (default 1). Nothing was changed.\n"),
        ("cancel", ["--all"], "Would cancel 0 jobs. Nothing was changed.\n"),
    ],
)
def test_a_dry_run_says_how_many_and_changes_nothing(three, readers, verb, options, text):
    ran = run("rtq_jobs", verb, *options, "--dry-run")

    assert (ran.code, ran.out) == (0, text)
    assert dead_ids(readers) == set(three)


# another queue


def test_letters_are_requeued_in_another_queue(broker, readers):
    jobs = [dead_job(broker).id for _ in range(3)]

    ran = run("rtq_jobs", "requeue", jobs[0], "--to", "bulk")
    assert (ran.code, ran.out) == (0, "1 dead letter was requeued in queue bulk.\n")
    assert (
        "No worker serves queue bulk now: the jobs wait. Start one: python manage.py rtq_worker --queues bulk"
        in ran.err
    )
    assert run("rtq_jobs", "requeue", "--all", "--to", "bulk").out == "2 dead letters were requeued in queue bulk.\n"

    assert [(readers.find(job_id).queue, readers.find(job_id).state) for job_id in jobs] == [("bulk", "queued")] * 3
    assert run("rtq_jobs", "requeue", "--all", "--to", "").code == 64
    ran = run("rtq_jobs", "requeue", dead_job(broker).id, "--to", "bulkk")
    assert (ran.code, ran.error) == (1, 'Queue bulkk is not one of the settings. Name it in RTQ["QUEUES"].')
