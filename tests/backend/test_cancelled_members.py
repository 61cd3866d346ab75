"""Jobs that are cancelled are looked up for django.tasks only if they are its own."""

from django_rtq import workflow
from tests.app.workflow_steps import double


def test_jobs_of_workflows_are_not_looked_up_one_by_one_when_they_are_cancelled(broker, monkeypatch):
    found = []
    monkeypatch.setattr("django_rtq.backend.running._find", lambda *job: found.append(job) or (None, ""))
    with workflow("flow") as flow:
        flow.map(double, range(3))

    flow.handle.cancel()
    assert found == []
    double.delay(1).cancel()
    assert len(found) == 1
