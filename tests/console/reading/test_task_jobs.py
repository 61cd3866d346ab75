"""The jobs of one task, in the queues and states where they are."""

import json

import pytest

from django_rtq.console.reading import task_details
from tests.console.lua.test_dead_letters import bury
from tests.support.jobs import QUEUE, claimed_job, enqueue, new_job, queued_job, retrying_job, scheduled_job

STATES = ("queued", "scheduled", "retrying", "running", "dead")


def body(task):
    return json.dumps({"task": task}, separators=(",", ":"))


def numbers(readers, task="ship"):
    """By queue the jobs in each state, and the states with more."""
    found = readers.tasks.get(task).queues
    return {each.queue.name: ([getattr(each, state) for state in STATES], set(each.cut)) for each in found}


def test_jobs_are_counted_by_queue_and_state(redis, broker, readers):
    for task, n in (("ship", 2), ("mail", 3)):
        for _ in range(n):
            bury(broker, task)
            retrying_job(broker, body=body(task))
            scheduled_job(broker, body=body(task), client="x")
        claimed_job(broker, body=body(task), worker=task, queue="busy")
    for task in ("ship", "mail", "ship"):
        queued_job(broker, body=body(task), client="x")
        queued_job(broker, body=body(task), client="y", priority=5)
    queued_job(broker, body="{}")

    assert numbers(readers) == {"busy": ([0, 0, 0, 1, 0], set()), QUEUE: ([4, 2, 2, 0, 2], set())}
    assert numbers(readers, "mail")[QUEUE][0] == [2, 3, 3, 0, 3]
    assert readers.tasks.get("ship").is_known
    assert not readers.tasks.get("nosuch").is_known


@pytest.mark.parametrize("task", ['ship","args":[1,"', "sh\\u0069p", "shi", "ship "])
def test_jobs_of_tasks_with_other_names_are_not_counted(redis, broker, readers, task):
    queued_job(broker, body='{"task":"ship","args":[1,"x"]}')
    queued_job(broker, body='{"task":"sh\\u0069p"}')
    queued_job(broker, body='{"args":["\\n{\\"task\\":\\"ship\\""],"task":"mail"}')

    assert numbers(readers, task)[QUEUE][0] == [0, 0, 0, 0, 0]
    assert numbers(readers)[QUEUE][0] == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_list_is_not_searched_to_its_end(redis, broker, readers, monkeypatch, more):
    monkeypatch.setattr(task_details, "MAX_SEARCHED", 3)
    monkeypatch.setattr(task_details, "LEAST_SEARCHED", 3)
    for n in range(3 + more):
        bury(broker, "ship")
        retrying_job(broker, body=body("mail"), wait_ms=10**8 + n)
    for n in range(3 + more):
        scheduled_job(broker, body=body("ship"), due=f"+{n + 1}000000")
        queued_job(broker, body=body("ship"), client=f"c{n % 2}")

    counts, cut = numbers(readers)[QUEUE]

    assert counts == [3, 3, 0, 0, 3]
    assert cut == ({"retrying", "queued", "scheduled", "dead"} if more else set())


def test_it_is_said_that_there_may_be_more_behind_large_ones(redis, broker, readers):
    large = json.dumps({"task": "mail", "args": ["x" * 30_000]}, separators=(",", ":"))
    enqueue(broker, *(new_job(body=large) for _ in range(100)), *(new_job(body=body("ship")) for _ in range(7)))
    enqueue(broker, *(new_job(body=large, due="+60000") for _ in range(100)))
    enqueue(broker, *(new_job(body=body("ship"), due="+90000") for _ in range(7)))

    assert numbers(readers)[QUEUE] == ([0, 0, 0, 0, 0], {"queued", "scheduled"})
