"""Jobs that run are stopped by hand."""

import pytest

from django_rtq.core.broker.worker_broker import worker_info_commands
from tests.console.admin.conftest import body, logged, text
from tests.console.admin.test_dead_letters import said
from tests.support.jobs import QUEUE, asked_job, claimed_job

PAGE, WORKERS = "/admin/django_rtq/job/", "/admin/django_rtq/worker/"


@pytest.fixture
def running(broker):
    """A job that is claimed by a worker."""
    return claimed_job(broker, "running", body=body("bakery", 1))


def note(broker, **found):
    """The worker info that the supervisor stores."""
    broker.redis.execute(list(worker_info_commands(broker.keys, {"w1": found})))


def test_a_job_that_runs_is_asked_to_stop_and_the_person_told_so(running, operator, readers):
    operator.post(f"{PAGE}{running.id}/cancel/", {"queue": QUEUE})
    assert "was asked to stop. It is cancelled when it stops" in said(operator)
    assert "Asked to stop." in logged()[0]
    found = readers.find(running.id)
    assert (found.state, found.is_stopping) == ("running", True)
    assert "When it stops, it is cancelled" in text(operator.get(f"{PAGE}{running.id}/cancel/?queue={QUEUE}"))


@pytest.mark.parametrize("where", ["", "{id}/"])
def test_a_job_that_was_asked_is_shown_as_such_and_not_asked_again(where, broker, operator):
    job = asked_job(broker, "asked")
    html = text(operator.get(PAGE + where.format(id=job.id)))
    assert "asked to stop" in html
    assert "Cancel job …" not in html
    assert "Terminate …" in html
