"""The button that undoes a purge."""

import pytest

from django_rtq.admin import permissions
from django_rtq.admin.action_log import LogFilter, read_log
from django_rtq.admin.pages.bulk import pages as bulk_pages
from tests.admin.conftest import text
from tests.admin.test_dead_letters import hidden_fields, said
from tests.admin.test_undoing import UNDO, button, press
from tests.support.jobs import QUEUE, new_job, queued_job, scheduled_job, unique_job

PURGE = f"/admin/django_rtq/queue/{QUEUE}/purge/"


def purge(client, queue=QUEUE):
    """Purge a queue after confirmation. Returns the message."""
    page = f"/admin/django_rtq/queue/{queue}/purge/"
    html = text(client.get(page))
    assert "You can undo this for 30 seconds." in html
    client.post(page, {**hidden_fields(html), "name": queue})
    return said(client)


def test_a_purged_queue_comes_back(broker, operator, inspector):
    jobs = [queued_job(broker, client="x"), queued_job(broker, client="x"), scheduled_job(broker)]
    html = purge(operator)
    assert "3 jobs were purged." in html
    assert not inspector.queues.get(QUEUE).queued

    where, words = press(operator, html)

    assert where == f"/admin/django_rtq/queue/{QUEUE}/"
    assert "Undone: 3 jobs are back." in words
    assert [job.id for job in inspector.job_list.each(QUEUE, "queued")] == [job.id for job in jobs[:2]]
    assert inspector.find(jobs[2].id).state == "scheduled"
    (entry,) = read_log(LogFilter(queue=QUEUE, action="undo"), limit=9)
    assert (entry.text, entry.count) == ("Undone: 3 jobs are back.", 3)


def test_the_purged_jobs_of_a_client_come_back(broker, operator, inspector):
    job, kept = queued_job(broker, client="x"), queued_job(broker, client="y")
    page = "/admin/django_rtq/client/purge/"
    html = text(operator.get(page, {"queue": QUEUE, "client": "x"}))
    assert "You can undo this for 30 seconds." in html
    operator.post(page, hidden_fields(html))
    assert inspector.queues.get(QUEUE).queued == 1

    where, _ = press(operator, said(operator))

    assert where == "/admin/django_rtq/client/client/?client=x"
    assert {each.id for each in inspector.job_list.each(QUEUE, "queued")} == {job.id, kept.id}


def test_a_unique_job_that_exists_again_is_told(broker, operator):
    broker.enqueue_unique(QUEUE, [unique_job("a"), unique_job("b", digest="d2")])
    html = purge(operator)
    broker.enqueue_unique(QUEUE, [unique_job("c")])

    _, words = press(operator, html)

    stays = "1 job stays away, because another one of the same unique key has been enqueued since."
    assert f"Undone: 1 job is back. {stays}" in words


def test_who_may_discard_may_not_undo_a_purge(broker, operator, person):
    queued_job(broker)
    url, fields = button(purge(operator))

    assert person(permissions.VIEW, permissions.DISCARD).post(url, fields).status_code == 403
    assert person(permissions.VIEW, permissions.DISCARD).post(UNDO, fields).status_code == 404


@pytest.fixture
def begin_purge(broker, operator, inspector, monkeypatch):
    """Begin to purge 250 jobs: the request has no time for more than 50. Returns where it leads, and the message."""

    def begin(page, **named):
        broker.enqueue(QUEUE, [new_job(client="x") for _ in range(250)])
        with monkeypatch.context() as patch:
            patch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
            answer = operator.post(page, {**hidden_fields(text(operator.get(page))), **named})
        html = said(operator)
        assert "50 jobs were purged. More jobs are waiting. Purge again to continue." in html
        assert inspector.queues.get(QUEUE).queued == 200
        return answer["Location"], html

    return begin


def test_what_a_long_purge_has_deleted_until_now_can_be_undone(operator, inspector, begin_purge):
    _, html = begin_purge(PURGE, name=QUEUE)
    assert "seconds)" not in html  # it goes on

    press(operator, html)

    assert inspector.queues.get(QUEUE).queued == 250


@pytest.mark.parametrize(
    ("page", "named"),
    [(PURGE, {"name": QUEUE}), (f"/admin/django_rtq/client/purge/?queue={QUEUE}&client=x", {})],
    ids=["queue", "client"],
)
def test_all_requests_of_a_long_purge_are_undone_together(operator, inspector, begin_purge, page, named):
    page, _ = begin_purge(page, **named)
    operator.post(page, {**hidden_fields(text(operator.get(page))), **named})
    html = said(operator)
    assert "200 jobs were purged." in html
    assert "(for 30 seconds)" in html
    assert not inspector.queues.get(QUEUE).queued

    _, words = press(operator, html)

    assert "Undone: 250 jobs are back." in words
    assert inspector.queues.get(QUEUE).queued == 250
