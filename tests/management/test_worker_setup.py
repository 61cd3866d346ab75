"""What rtq_worker and rtq_scheduler do before they start."""

from __future__ import annotations

from django_rtq.management.worker_setup import doubt_queues


def test_a_queue_that_nothing_names_is_likely_a_slip(settings, caplog):
    settings.RTQ = {**settings.RTQ, "QUEUES": {"reports": {}}}

    doubt_queues(["default", "reports", "report", "x"])

    assert caplog.messages == [
        'queue report: no task has it, and RTQ["QUEUES"] does not name it. Did you mean reports?',
        'queue x: no task has it, and RTQ["QUEUES"] does not name it.',
    ]
