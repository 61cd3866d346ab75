"""rtq_queues: lists, pauses, resumes and purges queues, and forgets those that are not used any more."""

import re

import pytest

from tests.support.commands import run, sit_at_terminal
from tests.support.jobs import (
    QUEUE,
    SEEDS,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
)

QUESTION = (
    "queue:default: Purge 3 waiting jobs? This includes scheduled jobs and jobs waiting for a retry. Running jobs and "
    "dead letters are kept. They will never run, and their arguments are deleted. This cannot be undone. Type the "
    "name of the queue to continue:"
)
UNKNOWN = "is declared, or has been used yet. Did you mean"


@pytest.fixture(autouse=True)
def _declared(monkeypatch):
    for user in ("commands.rtq_queues", "subjects.queues"):
        monkeypatch.setattr(f"django_rtq.console.{user}.declared_queues", lambda place: ["calls", "default"])


def test_declared_and_used_queues_are_listed(broker, rtq):
    claimed_job(broker)
    queued_job(broker, queue="typo")
    rtq.queues["typo"].pause(by="eve")

    heading, *rows = run("rtq_queues", "list", "--no-color").out.splitlines()

    assert " ".join(heading.split()) == (
        "QUEUE STATE QUEUED OLDEST WAIT SCHEDULED RETRYING RUNNING DEAD DONE/MIN FAILED/MIN LAST HOUR BUSY WORKERS "
        "HELD BACK"
    )
    assert "paused by eve, " in rows[-1]
    waited = re.compile(r" (\d\.\d s|<? ?\d+ ms) ")
    shown = [waited.sub(" 0.0 s ", row.partition("paused by")[0].replace("no worker", "unserved")) for row in rows]
    assert [row.split() for row in shown] == [
        ["calls", "unserved", "0", "-", "0", "0", "0", "0", "-", "-", "-", "-", "0", "-"],
        ["default", "open", "0", "-", "0", "0", "1", "0", "0.0", "0.0", "0", "0", "%", "1", "-"],
        ["typo", "paused", "1", "0.0", "s", "0", "0", "0", "0", "0.0", "0.0", "0", "-", "0"],
    ]


def test_for_programs_the_list_is_json(broker):
    queued_job(broker)

    calls, default = run("rtq_queues", "list", "--json").json

    assert (calls["name"], calls["declared"], calls["workers"], calls["queued"]) == ("calls", True, 0, 0)
    assert (default["name"], default["queued"]) == ("default", 1)


def test_an_empty_queue_is_forgotten(broker, readers):
    broker.register_queues(["typo", "default"])

    ran = run("rtq_queues", "forget", "typo", "default")

    assert ran.out.splitlines() == [
        "Queue typo was forgotten.",
        "Queue default was forgotten. It is declared, so it comes back when it is used.",
    ]
    assert (ran.code, ran.err) == (0, "")
    assert readers.queues.names() == []


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        (lambda broker, rtq: queued_job(broker, queue="typo"), "it has jobs or dead letters."),
        (lambda broker, rtq: dead_job(broker, queue="typo"), "it has jobs or dead letters."),
        (lambda broker, rtq: broker.sign_on(["typo"], "w1"), "a worker serves it."),
        (lambda broker, rtq: rtq.queues["typo"].pause(), "it is paused. Resume it first."),
        (lambda broker, rtq: rtq.queues["typo"].limit(max_running=1), "it has limits, or clients that are paused."),
    ],
)
def test_a_queue_in_use_stays_and_the_others_go(broker, readers, rtq, seed, why):
    broker.register_queues(["typo", "other"])
    seed(broker, rtq)

    ran = run("rtq_queues", "forget", "typo", "other")

    assert (ran.code, ran.out, ran.error) == (
        1,
        "Queue other was forgotten.\n",
        "1 of 2 queues could not be forgotten.",
    )
    assert ran.err.startswith(f"Queue typo stays: {why}")
    assert readers.queues.names() == ["typo"]


def test_outcomes_are_deleted_only_when_that_is_said(broker, redis):
    finished_job(broker)

    assert "Try again in two minutes." in run("rtq_queues", "forget", "default").err
    redis.delete("{rtq:default}:finished")  # as after some minutes
    assert "Add --discard-outcomes" in run("rtq_queues", "forget", "default").err
    assert run("rtq_queues", "forget", "default", "--discard-outcomes", "--json").json == {
        "forgotten": ["default"],
        "failed": {},
    }


@pytest.mark.parametrize("action", [["pause"], ["resume"], ["forget"], ["purge", "--no-input"]], ids=" ".join)
def test_an_unknown_queue_is_told_and_nothing_is_changed(broker, readers, rtq, action):
    broker.register_queues(["high"])
    rtq.queues["high"].pause()
    others = [] if action[0] == "purge" else ["high"]

    ran = run("rtq_queues", *action, *others, "hihg")

    assert (ran.code, ran.error) == (1, f"No queue 'hihg' {UNKNOWN} 'high'?")
    assert readers.queues.get("high").paused


# -- pause and resume


def test_queues_are_paused_and_resumed(broker, readers):
    broker.register_queues(["high", "low", "default"])

    paused = run("rtq_queues", "pause", "high", "low", "high")
    names = [queue.name for queue in readers.queues.details() if queue.paused]
    again = run("rtq_queues", "pause", "high")
    resumed = run("rtq_queues", "resume", "high", "default")

    assert names == ["high", "low"]
    assert paused.out.splitlines() == [
        "Queue high is paused. Running jobs continue, and no new jobs start.",
        "Queue low is paused. Running jobs continue, and no new jobs start.",
    ]
    assert (again.code, again.out) == (0, "Queue high was already paused.\n")
    assert resumed.out.splitlines() == ["Queue high was resumed.", "Queue default is not paused."]
    assert [queue.name for queue in readers.queues.details() if queue.paused] == ["low"]


def test_it_can_be_silent_or_print_json(broker):
    broker.register_queues(["high", "low"])

    assert run("rtq_queues", "pause", "low", verbosity=0).out == ""
    assert run("rtq_queues", "pause", "high", "low", "--json").json == {"paused": ["high", "low"], "changed": ["high"]}
    assert run("rtq_queues", "resume", "high", "--json").json == {"resumed": ["high"], "changed": ["high"]}


# -- purge


@pytest.fixture
def full(broker):
    """A queue with a job in every place."""
    for seed in SEEDS.values():
        seed(broker)


def numbers(readers):
    (queue,) = readers.queues.details([QUEUE])
    return queue.queued + queue.scheduled + queue.retrying, queue.running, queue.dead


def test_the_name_of_the_queue_is_the_answer(full, readers, monkeypatch):
    sit_at_terminal(monkeypatch, QUEUE)

    ran = run("rtq_queues", "purge", QUEUE)

    assert (ran.code, ran.out, ran.err) == (0, "queue:default: 3 jobs were purged.\n", QUESTION + " ")
    assert numbers(readers) == (0, 1, 1)


@pytest.mark.parametrize("answer", ["", "yes", "Default", EOFError(), KeyboardInterrupt()])
def test_any_other_answer_changes_nothing(full, readers, monkeypatch, answer):
    sit_at_terminal(monkeypatch, answer)

    ran = run("rtq_queues", "purge", QUEUE)

    assert (ran.code, ran.error, ran.out) == (1, "Not confirmed: nothing was changed.", "")
    assert numbers(readers) == (3, 1, 1)
