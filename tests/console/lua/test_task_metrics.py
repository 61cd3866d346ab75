"""How tasks did in the last hours."""

import pytest

from django_rtq.console.histogram import bucket_of, midpoint_of, percentile
from django_rtq.console.reading.metrics.reader import TaskMetrics
from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE


def tell(broker, *counters, queue=QUEUE):
    broker.register_queues([queue])
    broker.settle("w1", queue, Settlement(metrics=[(0, 0, len(counters) // 2, *counters)]))


def count_runs(redis, keys, hour, numbers):
    """Count so many runs of a task in this hour, and in hours before it: {0: 1, 24: 100}."""
    for back, number in numbers.items():
        redis.hset(keys.tasks + str(hour - back).encode(), "done ship", number)


def test_outcomes_are_told_by_task(redis, broker, readers):
    tell(broker, "done ship", 6, "failed ship", 2, "retried ship", 1, "dead ship", 1, "expired mail", 4)

    figures = readers.tasks.all()

    assert figures == {"mail": TaskMetrics(expired=4), "ship": TaskMetrics(done=6, failed=2, retried=1, dead=1)}
    assert (figures["ship"].failure_rate, figures["mail"].failure_rate) == (0.25, None)


def test_how_long_runs_and_waits_took_is_told_from_buckets(redis, broker, readers):
    tell(
        broker,
        *(f"r{bucket_of(0.1)} ship", 50, f"r{bucket_of(2.0)} ship", 45, f"r{bucket_of(60.0)} ship", 5),
        *(f"w{bucket_of(5)} ship", 99, f"w{bucket_of(30_000)} ship", 1),
    )

    figures = readers.tasks.all()["ship"]

    assert (figures.run_p50, figures.run_p95) == (pytest.approx(0.1, rel=0.13), pytest.approx(2, rel=0.13))
    assert (figures.wait_p50, figures.wait_p95) == (pytest.approx(0.005, rel=0.13), pytest.approx(0.005, rel=0.13))


@pytest.mark.parametrize("seconds", [1e-9, 1e-6, 0.00037, 0.01, 0.124, 1.0, 3599.0, 1e6])
def test_a_bucket_is_a_quarter_of_an_octave(seconds):
    assert midpoint_of(bucket_of(seconds)) == pytest.approx(seconds, rel=0.126)
    assert bucket_of(seconds * 1.3) > bucket_of(seconds)


def test_no_time_at_all_is_a_bucket_too():
    assert midpoint_of(bucket_of(0)) == 0


def test_a_share_of_nothing_is_nothing():
    assert percentile({}, 0.5) is None
    assert percentile({4: 1}, 0.95) == midpoint_of(4)
