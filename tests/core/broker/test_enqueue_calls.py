"""Several calls of enqueue() in one round trip."""

from django_rtq.core.broker import enqueue_calls
from django_rtq.core.broker.messages import EnqueueCall
from django_rtq.exceptions import BrokerError, BrokerFull
from tests.support.jobs import QUEUE, new_job, unique_job


def waiting(readers, queue=QUEUE):
    return [job.id for job in readers.search([(queue, "queued")]).page().jobs]


def test_no_call(broker):
    assert broker.enqueue_calls([]) == []


def test_each_call_has_its_answers(broker, readers):
    known, owner = new_job(), unique_job(digest="d1")
    broker.enqueue(QUEUE, [known])
    broker.enqueue(QUEUE, [owner])
    new, other = new_job(), new_job()

    answers = broker.enqueue_calls(
        [
            EnqueueCall(QUEUE, [new, known]),
            EnqueueCall("mail", [other]),
            EnqueueCall(QUEUE, [unique_job(digest="d1"), unique_job(digest="d2")]),
            EnqueueCall(QUEUE, []),
            EnqueueCall(QUEUE, [new_job(due="+60000")]),
        ]
    )

    assert answers == [["ok", "exists"], ["ok"], [f"duplicate {owner.id}", "ok"], [], ["ok"]]
    assert waiting(readers, "mail") == [other.id]


def test_jobs_of_a_queue_keep_their_order(broker, readers):
    jobs = [new_job(), unique_job(digest="d1"), new_job(), new_job(), unique_job(digest="d2")]
    broker.enqueue_calls([EnqueueCall(QUEUE, [job]) for job in jobs])
    assert waiting(readers) == [job.id for job in jobs]


def test_large_calls_are_split(broker, monkeypatch, readers):
    monkeypatch.setattr(enqueue_calls, "AT_ONCE", 2)
    monkeypatch.setattr(enqueue_calls, "JOBS_IN_FLIGHT", 5)
    jobs = [new_job() for _ in range(11)]
    answers = broker.enqueue_calls([EnqueueCall(QUEUE, jobs[:4]), EnqueueCall(QUEUE, jobs[4:])])
    assert answers == [["ok"] * 4, ["ok"] * 7]
    assert waiting(readers) == [job.id for job in jobs]


def test_a_call_that_is_refused_has_its_error(broker, redis, readers):
    broker.register_queues([QUEUE, "mail"])
    redis.answer_once(b"-ERR no\r\n")
    refused, accepted = broker.enqueue_calls([EnqueueCall(QUEUE, [new_job()]), EnqueueCall("mail", [])])
    assert isinstance(refused, BrokerError)
    assert accepted == []


def test_a_full_server(broker, redis):
    broker.register_queues([QUEUE])
    with redis.full_memory():
        (refused,) = broker.enqueue_calls([EnqueueCall(QUEUE, [new_job()])])
    assert isinstance(refused, BrokerFull)
