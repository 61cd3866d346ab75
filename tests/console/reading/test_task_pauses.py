"""Pausing a task, as the page about it says."""

import re

from django_rtq.console.reading.jobs.waiting_reason import waiting_reason
from tests.markdown import read
from tests.support.jobs import claim, queued_job

CHARGE = '{"task":"shop.tasks.charge"}'


def test_the_example_of_the_page_works(broker, readers):
    broker.register_queues(["default", "mail"])
    (code,) = (code for code in re.findall(r"```python\n(.*?)```", read("docs/limits.md"), re.S) if ".pause(" in code)
    *start, pause, in_one_queue, resume = code.splitlines()
    job = queued_job(broker, queue="mail", body=CHARGE)

    exec("\n".join([*start, pause]))
    assert claim(broker, queues=["default", "mail"]) == []
    assert [len(queue.paused_tasks) for queue in readers.queues.details(["default", "mail"])] == [1, 1]
    exec("\n".join([*start, in_one_queue, resume]))

    assert claim(broker, queues=["default", "mail"]) == [job.id]


def test_the_name_may_have_any_letters(broker, readers, rtq):
    rtq.tasks["shöp.tasks.zahlen"].pause("default", by="Ève 2")
    queued_job(broker, body='{"task":"shöp.tasks.zahlen","args":[1]}')

    assert claim(broker) == []

    (pause,) = readers.queues.get("default").paused_tasks
    assert (pause.task, pause.by, pause.held) == ("shöp.tasks.zahlen", "Ève 2", 1)


def test_a_job_says_why_it_waits(broker, readers, rtq):
    rtq.tasks["shop.tasks.charge"].pause("default")
    job = queued_job(broker, body=CHARGE)

    for _ in range(2):  # in its lane, and held
        found, position = readers.find_with_position(job.id)
        assert waiting_reason(found, position).startswith("Its task was paused ")
        claim(broker)
    broker.redis.execute_one(("HSET", broker.keys.of("default").paused, "task:shop.tasks.charge", "100"))

    found, position = readers.find_with_position(job.id)
    assert waiting_reason(found, position).startswith("Its task was resumed, so it will be queued in a moment.")
