"""Dead letters for the tests of rtq_jobs."""

import pytest

from tests.core.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401
from tests.support.commands import dead_letter, failure
from tests.support.jobs import QUEUE


@pytest.fixture
def three(redis, broker):
    """Dead letters of two queues, two tasks and two errors, the oldest first."""
    letters = [
        (QUEUE, "shop.tasks.send_mail", failure("shop.errors.OutOfOrder", "no answer")),
        ("bulk", "shop.tasks.report", failure("ValueError", "no number")),
        (QUEUE, "shop.tasks.resend_mail", failure("ValueError", "too long")),
    ]
    made = [dead_letter(broker, queue=queue, task=task, line=line) for queue, task, line in letters]
    for died_ms, ((queue, _, _), job_id) in enumerate(zip(letters, made, strict=True), 1_700_000_000_000):
        redis.zadd(f"{{rtq:{queue}}}:dead", {job_id: died_ms}, xx=True)
    return made
