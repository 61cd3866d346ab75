"""A refresh sends what has changed."""

import gzip
import re

import pytest

from django_rtq.console.admin.tags import content_digest
from django_rtq.console.reading import overview as shared_overview
from tests.console.admin.conftest import text
from tests.support.jobs import QUEUE, queued_job
from tests.support.waiting import minute_with_time_left

OVERVIEW = "/admin/django_rtq/queue/"


def refresh(client, *digests):
    """What live.js sends."""
    return client.get(OVERVIEW, headers={"X-RTQ-Refresh": " ".join(digests) or "1"})


def digests_of(html):
    return re.findall(r'data-rtq-digest="(\w+)"', html)


@pytest.fixture
def still(redis, broker, readers, monkeypatch):
    """A queue whose page shows no time that goes on; its charts do when a minute begins."""
    minute_with_time_left(redis, 5)
    broker.register_queues([QUEUE])
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(shared_overview, "REST", 0)
    monkeypatch.setattr("django_rtq.console.admin.overview._size", lambda number: "1 MB")


def test_what_the_page_has_is_sent_empty(still, broker, operator):
    digests = digests_of(text(operator.get(OVERVIEW)))
    answer = refresh(operator, *digests)

    html = text(answer)
    assert digests_of(html) == digests
    assert "<table" not in html
    assert len(answer.content) < 1000
    queued_job(broker)
    changed = text(refresh(operator, *digests))
    assert "<table" in changed
    assert "rtq-strip" in changed


def test_csrf_tokens_make_no_difference():
    form = '<form><input type="hidden" name="csrfmiddlewaretoken" value="%s"></form>'

    assert content_digest(form % "aB3") == content_digest(form % "xYz9")
    assert content_digest(form % "aB3") != content_digest(form % "aB3" + " ")


def test_a_long_answer_is_compressed_for_browsers_that_take_it(still, operator):
    plain = refresh(operator)
    headers = {"X-RTQ-Refresh": "1", "Accept-Encoding": "gzip, br"}
    packed = operator.get(OVERVIEW, headers=headers)

    assert "Content-Encoding" not in plain
    assert packed["Content-Encoding"] == "gzip"
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content) / 3
    assert digests_of(gzip.decompress(packed.content).decode()) == digests_of(text(plain))
    assert "Accept-Encoding" in packed["Vary"]
