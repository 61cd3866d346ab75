"""The format of the data in Redis is stored with it, and nobody writes to data of another format."""

import pytest

from django_rtq import FormatMismatch
from django_rtq.core.broker.server_info import FORMAT
from django_rtq.core.broker.worker_broker import WorkerBroker
from tests.support.apps import Readers
from tests.support.jobs import QUEUE, WORKER, new_job

OTHER = "Redis holds data in format 3 (key rtq:format), and this version of django_rtq uses format 2. Upgrade "


@pytest.fixture
def producer(broker):
    """One that has not used any queue yet."""
    producer = WorkerBroker(broker.config)
    yield producer
    producer.close()


def number(redis):
    return int(redis.get("rtq:format").split(b" ")[0])


def test_who_uses_redis_first_writes_the_format(redis, producer):
    producer.enqueue(QUEUE, [new_job()])
    written = redis.get("rtq:format")
    producer.sign_on([QUEUE], WORKER)
    producer.heartbeat([QUEUE], {}, promote=False)

    assert number(redis) == FORMAT
    assert redis.get("rtq:format") == written


def test_data_without_a_number_has_the_first_format(redis, producer):
    producer.enqueue(QUEUE, [new_job()])
    redis.delete("rtq:format")

    producer.sign_on([QUEUE], WORKER)

    assert number(redis) == FORMAT


@pytest.mark.parametrize(
    "use",
    [
        lambda broker: broker.enqueue(QUEUE, [new_job()]),
        lambda broker: broker.sign_on([QUEUE], WORKER),
        lambda broker: broker.heartbeat([QUEUE], {}, promote=False),
    ],
    ids=["enqueue", "sign_on", "heartbeat"],
)
def test_data_of_a_later_format_is_refused(redis, producer, use):
    redis.set("rtq:format", "3 abc")

    with pytest.raises(FormatMismatch) as caught:
        use(producer)

    assert str(caught.value).startswith(OTHER)
    assert redis.get("rtq:format") == b"3 abc"
    assert not redis.exists("{rtq:default}:jobs")


@pytest.mark.parametrize(
    "look",
    [
        lambda readers: readers.overview.read(),
        lambda readers: readers.overview.shared(),
        lambda readers: readers.workers(),
    ],
    ids=["overview", "shared", "workers"],
)
def test_people_are_told(redis, readers, look):
    look(readers)
    redis.set("rtq:format", "3 abc")

    with pytest.raises(FormatMismatch, match="format 2"):
        look(Readers(readers.broker))


def test_data_of_an_earlier_format_is_refused_with_the_place_that_says_what_to_do(redis, producer):
    redis.set("rtq:format", "0 abc")

    with pytest.raises(FormatMismatch, match=r'See "Format" in docs/redis.md, or set another RTQ\["PREFIX"\]'):
        producer.sign_on([QUEUE], WORKER)


def test_a_producer_needs_no_more_round_trips(redis, producer, monkeypatch):
    trips = []
    exchange = producer.redis._exchange
    monkeypatch.setattr(producer.redis, "_exchange", lambda *args, **kw: trips.append(args) or exchange(*args, **kw))

    producer.enqueue(QUEUE, [new_job()])

    assert len(trips) == 2  # what it sends of a queue first, and the job


def test_keys_of_another_type_are_named(redis, producer):
    producer.enqueue(QUEUE, [new_job()])
    producer.check_types([QUEUE])
    redis.zadd("{rtq:default}:finished", {"a": 1})

    with pytest.raises(FormatMismatch, match=r"a zset in the key \{rtq:default\}:finished, where .* stores a set"):
        producer.check_types(["low", QUEUE])


def test_lost_data_is_noticed_by_who_was_there_before(redis, producer):
    def beat():
        producer.heartbeat([QUEUE], {}, promote=False)

    beat()
    beat()
    assert not redis.exists("rtq:data_lost")
    redis.flushdb()
    beat()
    lost_ms = int(redis.get("rtq:data_lost"))

    assert abs(lost_ms - redis.time()[0] * 1000) < 60_000
    assert 0 < redis.ttl("rtq:data_lost") <= 86_400
    redis.delete("rtq:data_lost")
    beat()
    assert not redis.exists("rtq:data_lost")


def test_a_full_server_is_no_other_format(redis, producer):
    redis.config_set("maxmemory", 1)
    try:
        producer.sign_on([QUEUE], WORKER)
        producer.heartbeat([QUEUE], {}, promote=False)
    finally:
        redis.config_set("maxmemory", 0)

    assert not redis.exists("rtq:format")
