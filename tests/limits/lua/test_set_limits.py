"""Limits and pauses of a queue and its clients are stored, and claims keep to them."""

from datetime import timedelta

import pytest

from django_rtq.core.conf.config import read_config
from django_rtq.exceptions import ConfigurationError
from tests.markdown import blocks, read
from tests.support.jobs import QUEUE, claim, queued_job


def ids(jobs):
    return sorted(job.id for job in jobs)


def claimed_ids(broker, wanted=10):
    return sorted(claim(broker, wanted))


def test_unknown_limits_are_refused(rtq):
    with pytest.raises(ValueError, match="Did you mean"):
        rtq.clients["x"].limit(QUEUE, max_runing=1)
    with pytest.raises(ValueError, match="Which limit"):
        rtq.clients["x"].limit(QUEUE)


RATES = [
    ("100/s", "100/1000", "100/s"),
    ("500/m", "500/60000", "500/m"),
    ("3/h", "3/3600000", "3/h"),
    ("1/d", "1/86400000", "1/d"),
    ((500, timedelta(minutes=1)), "500/60000", "500/m"),
    ((5, timedelta(seconds=1.5)), "5/1500", "5/1.5s"),
    ("5/1.500s", "5/1500", "5/1.5s"),
    ("10/90m", "10/5400000", "10/90m"),
    ("10/24h", "10/86400000", "10/d"),
]


@pytest.mark.parametrize(("rate", "stored", "told"), RATES)
def test_rates_are_starts_in_a_time(redis, limits, rate, stored, told, rtq):
    rtq.clients["x"].limit(QUEUE, rate=rate, burst=3)

    assert redis.hget("{rtq:default}:limits", "client:x").decode() == f"rate={stored} burst=3"
    assert limits(QUEUE).clients["x"].limits["rate"].value == told


@pytest.mark.parametrize(
    "wrong",
    ["100", "0/s", "-1/s", "1.5/s", "1/w", "1 / s", 5, (0, timedelta(1)), (5, 1), (1,), "100001/s", (5, timedelta(0))],
)
def test_wrong_rates_are_refused(wrong, rtq):
    with pytest.raises(ValueError, match='has to be "100/s"'):
        rtq.queues[QUEUE].limit(rate=wrong)
    with pytest.raises(ConfigurationError, match="rate"):
        read_config({"REDIS": "redis://", "QUEUES": {"mail": {"client": {"rate": wrong}}}}, debug=False)


def test_a_client_starts_no_more_than_its_rate_allows(broker, limits, rtq):
    rtq.queues[QUEUE].limit_clients(rate="2/h", burst=2)
    rtq.clients["free"].limit(QUEUE, rate=None)
    x, free = [queued_job(broker, client="x") for _ in range(3)], [queued_job(broker, client="free") for _ in range(3)]

    assert claimed_ids(broker) == ids([*x[:2], *free])
    assert claimed_ids(broker) == []
    found = limits(QUEUE).clients["x"]
    assert found.is_blocked
    assert 1700 < found.holds.starts_in_seconds <= 1800


@pytest.mark.parametrize(
    "options",
    [
        {"max_running": -1},
        {"max_running": "5"},
        {"client": 5},
        {"client": {"max_run": 5}},
        {"client": {"max_running": True}},
        {"clients": {"acme": 5}},
        {"clients": {5: {}}},
        {"clients": ["acme"]},
    ],
)
def test_wrong_settings_are_refused(options):
    with pytest.raises(ConfigurationError, match="QUEUES"):
        read_config({"REDIS": "redis://", "QUEUES": {"mail": options}}, debug=False)


@pytest.mark.parametrize(("clients", "encoding"), [(32, b"listpack"), (33, b"hashtable")])
def test_limits_of_many_clients_are_in_a_table(broker, redis, clients, encoding, rtq):
    for number in range(clients):
        rtq.clients[f"c{number}"].limit(QUEUE, max_running=5)
    key = broker.keys.of(QUEUE).limits

    assert redis.object("encoding", key).replace(b"ziplist", b"listpack") == encoding  # Redis before 7
    assert redis.hlen(key) == clients


def test_the_plans_of_the_docs_are_set_and_taken_back(broker, limits):
    (code,) = [code for file, code in blocks(read("docs/limits.md")) if file == "shop/plans.py"]
    exec(compile(code, "docs/limits.md", "exec"), shop := {})

    shop["apply"]("acme", "paid")
    found = limits("mail").clients["acme"].limits
    assert {name: limit.value for name, limit in found.items()} == shop["PLANS"]["paid"]

    shop["apply"]("acme", "free")
    assert limits("mail").clients == {}
