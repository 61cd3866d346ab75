"""rtq_queues: lists queues, and forgets those that are not used any more."""

import pytest

from django_rtq.broker.broker import Broker
from tests.management.commands import run
from tests.support.jobs import claimed_job, dead_job, finished_job, new_job, queued_job


@pytest.fixture(autouse=True)
def _declared(monkeypatch):
    monkeypatch.setattr("django_rtq.management.commands.rtq_queues.declared_queues", lambda: ["calls", "default"])


def test_declared_and_used_queues_are_listed(broker, inspector):
    claimed_job(broker)
    queued_job(broker, queue="typo")
    inspector.pause("typo")

    heading, *rows = run("rtq_queues", "list", "--no-color").out.splitlines()

    assert heading.split() == (
        ["QUEUE", "DECLARED", "STATE", "WORKERS", "WAITING", "RUNNING", "DEAD", "FINISHED", "OLDEST"]
    )
    assert [row.split()[:7] for row in rows] == [
        ["calls", "yes", "open", "0", "0", "0", "0"],
        ["default", "yes", "open", "1", "0", "1", "0"],
        ["typo", "no", "paused", "0", "1", "0", "0"],
    ]


@pytest.mark.parametrize("arguments", [["list", "--json"], ["--json", "list"]])
def test_for_programs_the_list_is_json(broker, arguments):
    queued_job(broker)

    calls, default = run("rtq_queues", *arguments).json

    assert (calls["name"], calls["declared"], calls["workers"], calls["queued"]) == ("calls", True, 0, 0)
    assert (default["name"], default["queued"]) == ("default", 1)


def test_an_empty_queue_is_forgotten(broker, inspector):
    broker.register_queues(["typo", "default"])

    ran = run("rtq_queues", "forget", "typo", "default")

    assert ran.out.splitlines() == [
        "Forgot queue typo.",
        "Forgot queue default. It is declared, so it comes back when it is used.",
    ]
    assert (ran.code, ran.err) == (0, "")
    assert inspector.queues.names() == []


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        (lambda broker, inspector: queued_job(broker, queue="typo"), "it has jobs or dead letters. See rtq_jobs list"),
        (lambda broker, inspector: dead_job(broker, queue="typo"), "it has jobs or dead letters."),
        (
            lambda broker, inspector: broker.sign_on(["typo"], "w1"),
            "a worker serves it. See rtq_workers list --queue typo",
        ),
        (lambda broker, inspector: inspector.pause("typo"), "it is paused. Resume it first:"),
    ],
)
def test_a_queue_in_use_stays_and_the_others_go(broker, inspector, seed, why):
    broker.register_queues(["typo", "other"])
    seed(broker, inspector)

    ran = run("rtq_queues", "forget", "typo", "other")

    assert (ran.code, ran.out, ran.error) == (1, "Forgot queue other.\n", "1 of 2 queues could not be forgotten.")
    assert ran.err.startswith(f"Queue typo stays: {why}")
    assert inspector.queues.names() == ["typo"]


def test_outcomes_are_deleted_only_when_that_is_said(broker, redis):
    finished_job(broker)

    assert "Try again in two minutes." in run("rtq_queues", "forget", "default").err
    redis.delete("{rtq:default}:finished")  # as after some minutes
    assert "Add --discard-outcomes" in run("rtq_queues", "forget", "default").err
    assert run("rtq_queues", "forget", "default", "--discard-outcomes", "--json").json == {
        "forgotten": ["default"],
        "failed": {},
    }


def test_an_unknown_queue_is_told(broker):
    broker.register_queues(["typo"])

    ran = run("rtq_queues", "forget", "typ")

    assert (ran.code, ran.error) == (1, "No queue 'typ' is declared, or has been used yet. Did you mean 'typo'?")


def test_a_job_that_arrives_meanwhile_is_not_lost(broker, inspector):
    """The producer has used the queue before, so it does not add it to the list again by itself."""
    producer = Broker(broker.config)
    try:
        producer.enqueue("typo", [new_job()])
        while inspector.purge("typo"):
            pass
        assert run("rtq_queues", "forget", "typo").code == 0
        producer.enqueue("typo", [new_job()])
    finally:
        producer.close()

    assert inspector.queues.names() == ["typo"]
    assert inspector.queues.get("typo").queued == 1
