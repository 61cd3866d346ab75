"""A claim that leaves clients out: their jobs have crashed processes, and others have some."""

import pytest

from tests.support.jobs import QUEUE, WORKER, names, queued_job

pytestmark = pytest.mark.parametrize("weighted", [False, True], ids=["by turns", "by weights"])


@pytest.fixture
def claim(broker, weighted, rtq):
    """Claim so many jobs, leaving clients out. Returns the names of the jobs."""
    if weighted:
        rtq.clients["heavy"].limit(QUEUE, weight=2)

    def act(wanted, *aside):
        broker.sign_on([QUEUE], WORKER)
        result = broker.claim(WORKER, [QUEUE], wanted, aside=[(QUEUE, client) for client in aside])
        assert result.error is None
        return [name for claimed in result.claimed for name in names(claimed.ids)]

    return act


def test_they_get_nothing_and_the_others_all(broker, claim):
    for name in ("bad1", "a1", "bad2", "a2", "b1"):
        queued_job(broker, name, client=name[:-1])

    assert claim(10, "bad") == ["a1", "b1", "a2"]
    assert claim(10, "bad") == []
    assert claim(10) == ["bad1", "bad2"]


def test_as_many_jobs_as_wanted_are_found_behind_many_of_them(broker, claim):
    crashing = [f"bad{number}" for number in range(20)]
    for client in [*crashing, "a", "b", "c"]:
        queued_job(broker, client, client=client)

    assert claim(2, *crashing) == ["a", "b"]
    assert claim(1, *crashing) == ["c"]
