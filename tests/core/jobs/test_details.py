"""What is told of one job: when what happened to it."""

import pytest

from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import new_job_id
from django_rtq.core.jobs.record import read_head
from django_rtq.core.jobs.serializer import unquoted
from tests.support.jobs import QUEUE, queued_job


@pytest.mark.parametrize("error", [{}, {"at": "x", "seconds": None, "attempt": []}, {"at": True, "error": 7}])
def test_whatever_stands_there_is_told_as_far_as_it_goes(error):
    attempt = Attempt.read(error)

    assert (attempt.number, attempt.started_at, attempt.ended_at, attempt.seconds) == (None, None, None, None)


def test_an_id_tells_when_the_job_was_made(redis, broker, access):
    job, ours = queued_job(broker), new_job_id()
    broker.enqueue(QUEUE, [job._replace(id=ours)])

    assert access.find(job.id).made_at is None  # anybody's
    assert abs(access.find(ours).made_at.timestamp() - redis.time()[0]) < 5


@pytest.mark.parametrize(
    ("head", "task"),
    [
        (b'0 3 1 0 x\n{"task":"a.b","args":[', "a.b"),
        (b'0 3 1 0 x\n{"task":"a\\"\\u0062"}', 'a"b'),
        (b'0 3 1 0 x\n{"task":"a.b', ""),
        (b'0 3 1 0 x\n{"args":["\\"task\\":\\"no\\""]}', ""),
        (b"nonsense", ""),
        (b"", ""),
    ],
)
def test_the_beginning_of_a_record_tells_its_task(head, task):
    client, found = read_head(head)

    assert found == task
    assert client == ("x" if head.startswith(b"0 ") else None)


@pytest.mark.parametrize(("text", "said"), [("a", "a"), (r"a\n", "a\n"), (r"a\u00", "a"), ("a\\", "a"), ("", "")])
def test_a_text_that_was_cut_says_what_is_left(text, said):
    assert unquoted(text) == said
