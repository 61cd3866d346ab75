"""What a job logged, on its page."""

import re

from django_rtq.console.log_lines import write_line
from tests.console.admin.conftest import body, text
from tests.support.jobs import QUEUE, dead_job

PAGE = "/admin/django_rtq/job/"


def append_lines(broker, job, *lines):
    broker.redis.execute_one(("RPUSH", broker.keys.of(QUEUE).log_of(job.id), *(f"t-1 {line}" for line in lines)))


def test_the_lines_that_it_logged_are_shown_by_attempt(broker, operator):
    job = dead_job(broker, body=body("bakery", 7))
    append_lines(
        broker,
        job,
        write_line(1, 1_800_000_000_000, "INFO", "shop", "<b>order</b> 7"),
        write_line(2, 1_800_000_060_000, "ERROR", "shop.bank", "no money", "Traceback:\n  last line"),
    )
    html = text(operator.get(f"{PAGE}{job.id}/"))

    log = html.split('class="rtq-log"')[1].split("</ol>")[0]
    assert "&lt;b&gt;order&lt;/b&gt; 7" in log
    assert re.findall(r"Attempt (\d)", log) == ["1", "2"]
    assert '<li class="rtq-log-error">' in log
    assert "no money\nTraceback:\n  last line" in log
    assert 'datetime="2027-01-15T08:00:00+00:00"' in log
    assert 'class="rtq-log"' not in text(operator.get(f"{PAGE}{dead_job(broker).id}/"))
