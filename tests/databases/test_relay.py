"""The relay moves rows of the outbox to Redis that the process that enqueued them has left."""

import json
import time
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from django_rtq import signals, task
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.scheduler.scheduler import scheduler_loops
from django_rtq.databases import relay as relay_module
from django_rtq.databases.outbox import outbox_lag
from django_rtq.databases.relay import INTERVAL_SECONDS, OutboxRelay, relay
from django_rtq.exceptions import BrokerFull, BrokerUnavailable
from django_rtq.models import OutboxJob
from tests.app.tasks import note
from tests.databases.test_outbox import UNREACHABLE
from tests.support.jobs import QUEUE, claim, job_id, new_job, receiving, settle
from tests.support.waiting import PATIENCE, start_thread


@task(unique=True)
def once(name):
    """A job of which one like it exists."""


@pytest.fixture(autouse=True)
def _outbox(database, broker, with_options, redis):
    with_options(OUTBOX=True)


@pytest.fixture
def leave(with_options):
    """Leaves jobs in the outbox, as if Redis had been away at the commit; relays may take them at once."""

    def act(call):
        with_options(REDIS=UNREACHABLE, OUTBOX=True)
        with transaction.atomic():
            found = call()
        with_options(REDIS=redis_url, OUTBOX=True)
        make_due()
        return found

    redis_url = get_broker().config.redis
    return act


def make_due():
    """The grace of the process that has inserted the rows is over."""
    for row in OutboxJob.objects.all():
        OutboxJob.objects.filter(pk=row.pk).update(due_at=row.due_at - timedelta(seconds=10))


def move():
    return relay(get_broker(), "default")


def test_rows_are_moved_in_their_order_under_their_ids(leave, names):
    jobs = leave(lambda: [*note.delay_many([((name,), {}) for name in "abcdefgh"]), note.delay("i")])
    assert names() == []

    assert move() == 9

    assert names() == list("abcdefghi")
    assert [job.state for job in jobs] == ["queued"] * 9
    assert not OutboxJob.objects.exists()
    assert move() == 0


def test_fresh_rows_belong_to_the_process_that_inserted_them(names):
    with transaction.atomic():
        note.delay("a")
        transaction.on_commit(lambda: None)
        OutboxJob.objects.update(due_at=timezone.now() + timedelta(seconds=4))
        assert move() == 0
        transaction.set_rollback(True)


def test_a_job_that_was_sent_already_is_not_doubled(names):
    with transaction.atomic():
        note.delay("a")
        row = OutboxJob.objects.get()
    row.due_at = timezone.now()
    row.save(force_insert=True)

    assert move() == 1
    assert names() == ["a"]
    assert not OutboxJob.objects.exists()


def left_row(**fields):
    """A job of long ago whose row is due. Returns the job."""
    made = time.time_ns() // 1_000_000 - 200_000
    job = new_job(body='{"task": "tests.app.tasks.note", "args": ["a"]}')._replace(id=job_id("a", made))
    row = {"pk": job.id, "queue": QUEUE, "task": note.name, "job": json.dumps(job), "due_at": timezone.now(), **fields}
    OutboxJob.objects.create(**row)
    return job


@pytest.mark.parametrize("before", ["nothing", "it has run", "it is elsewhere"])
def test_a_job_is_not_doubled_when_its_id_is_forgotten_or_it_is_in_another_queue(names, redis, readers, before):
    job = left_row()
    if before == "it has run":
        get_broker().enqueue(QUEUE, [job])
        assert claim(get_broker(), worker="w1") == [job.id]
        settle(get_broker(), "ack", job, worker="w1")
        for_workers(get_broker()).sign_off([QUEUE], "w1")
        assert redis.delete("{rtq:default}:finished")
    elif before == "it is elsewhere":
        get_broker().enqueue("other", [job])

    assert move() == 1
    assert readers.queues.get(QUEUE).queued == (before == "nothing")
    assert names() == (["a"] if before == "nothing" else [])
    assert not OutboxJob.objects.exists()


def test_a_row_of_another_format_stays(names, caplog):
    job = left_row(task="t", format=3)

    assert move() == 1
    assert names() == []
    sentence = "the row has format 3, and this version of django_rtq reads format 1. A worker or scheduler of the"
    assert f"job {job.id} of t stays in the outbox, retrying in 10 s: {sentence}" in caplog.text
    assert outbox_lag("").oldest_error.startswith(sentence)
    OutboxJob.objects.update(format=1, due_at=timezone.now())
    assert move() == 1
    assert names() == ["a"]


def test_unique_jobs_and_delays(leave, names):
    leave(lambda: [once.delay("a"), once.delay("a"), note.using(run_after=60).delay("later")])
    assert move() == 3
    assert names() == ["a"]
    (later,) = readers_of().search([("default", "scheduled")]).page().jobs
    assert later.args == ["later"]


def test_the_signal(leave):
    told = []

    def receive(sender, job_ids, queue, task, **kwargs):
        told.append((sender, job_ids, queue, task))

    with receiving(receive, signals.job_enqueued):
        job = leave(lambda: note.delay("a"))
        assert told == []
        leave(lambda: [once.delay("x"), once.delay("x")])
        move()
    assert told[0] == (OutboxRelay, [job.id], "default", note.name)
    assert len(told[1][1]) == 1  # the duplicate was not enqueued


@pytest.mark.parametrize(
    ("field", "value"), [("queue", "no queue!"), ("job", "{"), ("job", "[1]"), ("job", '{"a": 1}')]
)
def test_a_row_that_cannot_be_sent_does_not_block_others(leave, names, caplog, field, value):
    bad, _ = leave(lambda: [note.delay("bad"), note.delay("good")])
    OutboxJob.objects.filter(pk=bad.id).update(**{field: value})

    assert move() == 2
    assert names() == ["good"]

    row = OutboxJob.objects.get()
    assert row.attempts == 1
    assert row.error
    assert timedelta(seconds=5) < row.due_at - timezone.now() < timedelta(seconds=11)
    assert f"job {bad.id} of {note.name} stays in the outbox, retrying in 10 s" in caplog.text
    assert move() == 0


def test_it_is_tried_again_after_longer_and_longer(leave, caplog):
    bad = leave(lambda: note.delay("bad"))
    OutboxJob.objects.filter(pk=bad.id).update(job="{", attempts=3, due_at=timezone.now())
    move()
    assert "retrying in 80 s" in caplog.text
    OutboxJob.objects.filter(pk=bad.id).update(attempts=3000, due_at=timezone.now())
    move()
    assert "retrying in 3600 s" in caplog.text


def test_a_job_that_redis_refuses_is_sent_apart_from_the_others(leave, names, redis):
    note.delay("known queue")
    leave(lambda: [note.delay("a"), note.delay("b")])
    redis.answer_once(b"-ERR no\r\n")
    assert move() == 2
    assert names() == ["known queue", "a", "b"]


def test_when_redis_accepts_nothing_all_rows_stay(leave, names, redis, with_options):
    leave(lambda: [note.delay("a"), note.delay("b")])
    note.delay("known queue")
    with redis.full_memory(), pytest.raises(BrokerFull):
        move()
    assert OutboxJob.objects.filter(attempts=0).count() == 2
    with_options(REDIS=UNREACHABLE, OUTBOX=True)
    with pytest.raises(BrokerUnavailable):
        move()
    assert OutboxJob.objects.filter(attempts=0).count() == 2


def test_a_bounded_number_of_rows_and_statements(leave, monkeypatch, names, django_assert_max_num_queries):
    monkeypatch.setattr(relay_module, "ROWS_AT_ONCE", 50)
    leave(lambda: note.delay_many([((str(number),), {}) for number in range(120)]))
    found = OutboxRelay(get_broker(), "default")

    with django_assert_max_num_queries(4):  # with BEGIN and COMMIT
        assert found.tick() == 0.0
    assert OutboxJob.objects.count() == 70
    assert found.tick() == 0.0
    assert found.tick() == INTERVAL_SECONDS
    assert names() == [str(number) for number in range(50)]  # the first page of 120


def test_two_relays_take_different_rows(leave, database, names):
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database cannot skip locked rows")
    leave(lambda: [note.delay("a"), note.delay("b")])
    with transaction.atomic():
        first = OutboxJob.objects.select_for_update().order_by("due_at")[0]
        found = []

        def other():
            found.append(move())
            connections.close_all()

        start_thread(other).join(PATIENCE)
        assert found == [1]
        assert names() == ["b"]
    assert OutboxJob.objects.get() == first
    assert move() == 1


def test_a_database_that_is_away_is_said_once(caplog):
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE django_rtq_outboxjob")
    found = OutboxRelay(get_broker(), "default")
    assert found.tick() == found.tick() == INTERVAL_SECONDS
    assert caplog.text.count("the outbox in database 'default' cannot be read") == 1


def test_there_is_one_if_there_is_an_outbox(with_options):
    assert [loop.name for loop in scheduler_loops(get_broker(), ["default"])] == ["scheduler", "outbox"]
    with_options(OUTBOX=False)
    assert [loop.name for loop in scheduler_loops(get_broker(), ["default"])] == ["scheduler"]


def test_the_query_uses_the_index(database):
    if database.vendor == "sqlite":
        rows = OutboxJob.objects.filter(due_at__lte=timezone.now()).order_by("due_at").values_list("pk")[:200]
        assert "USING INDEX" in rows.explain()
    elif database.vendor == "postgresql":
        columns = database.query("SELECT indexdef FROM pg_indexes WHERE tablename = 'django_rtq_outboxjob'")
        assert any("(due_at)" in column for (column,) in columns)
    else:
        assert "due_at" in [row[4] for row in database.query("SHOW INDEX FROM django_rtq_outboxjob")]
