"""Since when which version of the project is the latest that workers run."""

from dataclasses import replace

import pytest

from django_rtq.console.reading.metrics.reader import deploys_of
from tests.support.console_steps import report_version

GONE_MS = 60_000


@pytest.fixture
def report(broker):
    """Supervisors report versions, one after the other. Answers what the script said."""

    def send(*versions):
        return [report_version(broker, version) for version in versions]

    return send


@pytest.fixture
def later(redis, keys):
    """Lets time pass for what these versions reported."""

    def wait(ms, *versions):
        for name in versions:
            redis.hincrby(keys.versions, name, -ms)

    return wait


@pytest.fixture
def deploys(broker, monkeypatch):
    """The versions in the order in which they became the latest."""
    monkeypatch.setattr(broker, "config", replace(broker.config, version="1"))
    return lambda: [deploy.version for deploy in broker.redis.run(deploys_of(broker))][::-1]


def test_the_first_report_of_a_version_is_a_deploy(redis, broker, report, deploys):
    before = redis.time()[0] * 1000
    assert report("1.0", "1.0", "1.1 beta") == ["new", "known", "new"]

    assert deploys() == ["1.0", "1.1 beta"]
    latest = broker.redis.run(deploys_of(broker))[0]
    assert before <= latest.at.timestamp() * 1000 <= redis.time()[0] * 1000 + 1000


def test_a_rollback_in_the_middle_of_a_deploy_is_one_when_the_new_version_has_gone(report, later, deploys):
    report("1", "2", "1")
    later(GONE_MS - 5_000, "2")
    assert report("1") == ["known"]

    later(10_000, "2")
    assert report("1", "1") == ["new", "known"]
    assert deploys() == ["1", "2", "1"]


def test_versions_that_are_gone_are_forgotten(redis, keys, report, later):
    report("1", "2")
    later(GONE_MS + 1, "1")
    report("2")

    assert redis.hkeys(keys.versions) == [b"2"]


def test_fifty_deploys_are_kept_and_fifty_versions(redis, keys, report, deploys):
    report(*(str(number) for number in range(70)))

    assert deploys() == [str(number) for number in range(20, 70)]
    assert redis.hlen(keys.versions) == 50


def test_all_expires_a_month_after_the_last_report(redis, keys, report):
    report("1")
    redis.persist(keys.deploys)
    report("1")

    for key in (keys.deploys, keys.versions):
        assert 30 * 86_400 < redis.ttl(key) <= 31 * 86_400
