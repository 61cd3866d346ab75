"""rtq_queues purge: throwing away what waits, after a question."""

import pytest

from django_rtq.inspector.sweep import Sweeper
from tests.management.commands import Terminal, dead_letter, run, sit_at_terminal
from tests.support.jobs import QUEUE, claimed_job, new_job, queued_job, retrying_job, scheduled_job

QUESTION = "This deletes 3 waiting jobs of queue default. Type the name of the queue to continue:"


@pytest.fixture
def full(broker):
    """A queue with a job in every place."""
    dead_letter(broker)
    retrying_job(broker)
    claimed_job(broker)
    scheduled_job(broker)
    queued_job(broker)


def numbers(inspector):
    (queue,) = inspector.queues.details([QUEUE])
    return queue.queued + queue.scheduled + queue.retrying, queue.running, queue.dead


def test_what_waits_is_thrown_away_and_the_rest_stays(full, inspector):
    ran = run("rtq_queues", "purge", QUEUE, "--no-input")

    assert (ran.code, ran.out, ran.err) == (0, "Purged 3 jobs from queue default.\n", "")
    assert numbers(inspector) == (0, 1, 1)


def test_as_json(full):
    assert run("rtq_queues", "purge", QUEUE, "--no-input", "--json").json == {"queue": QUEUE, "purged": 3}
    assert run("rtq_queues", "purge", QUEUE, "--no-input", "--json").json == {"queue": QUEUE, "purged": 0}


def test_an_empty_queue_is_said_in_words_and_asks_nothing(broker, monkeypatch):
    broker.register_queues([QUEUE])
    sit_at_terminal(monkeypatch, AssertionError("asked"))

    assert run("rtq_queues", "purge", QUEUE).out == "No job waits in queue default: nothing was deleted.\n"


def test_the_name_of_the_queue_is_the_answer(full, inspector, monkeypatch):
    sit_at_terminal(monkeypatch, QUEUE)

    ran = run("rtq_queues", "purge", QUEUE)

    assert (ran.code, ran.err) == (0, QUESTION + " ")
    assert numbers(inspector) == (0, 1, 1)


@pytest.mark.parametrize("answer", ["", "yes", "Default", EOFError(), KeyboardInterrupt()])
def test_any_other_answer_changes_nothing(full, inspector, monkeypatch, answer):
    sit_at_terminal(monkeypatch, answer)

    ran = run("rtq_queues", "purge", QUEUE)

    assert (ran.code, ran.error, ran.out) == (1, "Not confirmed: nothing was changed.", "")
    assert numbers(inspector) == (3, 1, 1)


def test_where_nobody_can_answer_it_does_nothing(full, inspector):
    ran = run("rtq_queues", "purge", QUEUE)

    assert (ran.code, "--no-input" in ran.error) == (1, True)
    assert numbers(inspector) == (3, 1, 1)


def test_an_unknown_queue_is_an_error(full):
    assert "Did you mean 'default'?" in run("rtq_queues", "purge", "defualt", "--no-input").error


def test_many_are_worked_through_in_steps_with_a_line_that_is_overwritten(broker):
    broker.enqueue(QUEUE, [new_job() for _ in range(250)])

    ran = run("rtq_queues", "purge", QUEUE, "--no-input", err=Terminal())

    assert ran.out == "Purged 250 jobs from queue default.\n"
    shown = [part for part in ran.err.split("\r") if part.strip()]
    assert shown == [f"Purged: {done} of 250" for done in (100, 200, 250)]
    assert ran.err.endswith("\r")


def test_an_outage_says_what_was_done_until_then(broker, inspector, monkeypatch):
    broker.enqueue(QUEUE, [new_job() for _ in range(250)])
    purge, steps = Sweeper.purge_some, []

    def purge_once(self, queue, *named):
        if steps:
            raise KeyboardInterrupt
        steps.append(queue)
        return purge(self, queue, *named)

    monkeypatch.setattr(Sweeper, "purge_some", purge_once)
    ran = run("rtq_queues", "purge", QUEUE, "--no-input")

    assert (ran.code, ran.out) == (130, "")
    assert ran.error == "Stopped. Before that, 100 jobs of queue default had been purged."
    assert numbers(inspector) == (150, 0, 0)
