"""The server's clock is put back, or forward: time goes on all the same, and never back (rule 8)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, WORKER, claimed_job, new_job
from tests.support.mutant import OWN_CLOCK, mutated
from tests.support.redis_server import LEASE_SECONDS
from tests.support.single_steps import promote, renew
from tests.support.snapshots import place_of

pytestmark = pytest.mark.long

HOUR_MS = 3_600_000
LEASE_MS = int(LEASE_SECONDS * 1000)
BEGAN_MS = 1_800_000_000_000


class Server:
    """A Redis whose clock is set by the test."""

    def __init__(self, redis, broker):
        self.redis, self.broker, self.keys = redis, broker, broker.keys.of(QUEUE)
        redis.flushdb()
        self.set(BEGAN_MS)

    def set(self, clock):
        self.clock = clock
        self.redis.set("clock", clock)

    def now(self):
        """The time, as any script has it."""
        return self.broker.redis.execute_one(SCRIPTS["queue_overview"].call(self.keys, ()))[0]

    def contact(self):
        """A heartbeat, and the time that it noted."""
        renew(self.broker, [QUEUE], [])
        return int(self.redis.hget(self.keys.clock, "contact"))


@pytest.fixture
def server(redis, broker):
    with mutated(OWN_CLOCK):
        yield Server(redis, broker)
    redis.delete("clock")


def test_a_clock_that_is_put_back_does_not_stop_the_time(server):
    noted = server.contact()
    server.set(noted - 600_000)

    assert server.contact() == noted
    server.set(noted - 590_000)
    assert server.now() == noted + 9000
    assert server.contact() == noted + 9000


def test_time_and_clock_meet_again_after_ten_times_the_step(server):
    noted = server.contact()
    server.set(noted - 600_000)
    server.contact()

    server.set(noted - 600_000 + 5_999_990)
    assert server.now() == server.clock + 1
    server.set(noted - 600_000 + 6_000_000)
    assert server.now() == server.clock
    server.set(server.clock + 60_000)
    assert server.contact() == server.clock


def test_a_second_step_back_is_one_more(server):
    noted = server.contact()
    server.set(noted - 600_000)
    server.contact()
    server.set(noted - 500_000)
    ahead = server.contact()
    server.set(noted - 900_000)

    assert server.contact() == ahead == noted + 90_000
    server.set(noted - 890_000)
    assert server.now() == ahead + 9000


@pytest.mark.parametrize("back", [HOUR_MS, 2 * HOUR_MS])
def test_a_clock_that_was_ahead_by_an_hour_was_wrong_and_is_believed_now(server, back):
    noted = server.contact()
    server.set(noted - back)

    assert server.now() == server.clock
    assert server.contact() == server.clock
    server.set(server.clock + 1000)
    assert server.now() == server.clock


def test_leases_that_were_given_by_a_wrong_clock_end_as_if_it_had_been_right(server, broker, redis):
    job = claimed_job(broker)
    server.set(server.clock - 2 * HOUR_MS)
    renew(broker, [QUEUE], [])
    for _ in range(4):
        server.set(server.clock + LEASE_MS // 3)
        renew(broker, [QUEUE], [])

    assert broker.reclaim(QUEUE)[1] == [(job.id, "queued")]


def test_a_clock_that_leaps_forward_takes_nobodys_jobs(server, broker, redis):
    job = claimed_job(broker)
    server.set(server.clock + HOUR_MS // 2)

    assert broker.reclaim(QUEUE) == (LEASE_SECONDS / 2, [])
    assert renew(broker, [QUEUE], [WORKER])[1] == set()
    assert place_of(redis, job) == "running:w1"


def test_jobs_that_wait_for_their_time_and_those_of_the_dead_go_on_after_a_step_back(server, broker):
    held = claimed_job(broker)
    broker.enqueue(QUEUE, [new_job("due", due="+1000")])
    server.set(server.clock - 1_800_000)
    taken = []
    for _ in range(5):  # somebody lives, for more than a lease
        renew(broker, [QUEUE], ["other"])
        server.set(server.clock + LEASE_MS // 3)
        taken += broker.reclaim(QUEUE)[1]

    assert taken == [(held.id, "queued")]
    assert len(promote(broker, QUEUE)[1]) == 1


def test_by_how_much_the_clock_is_behind_is_told(server, readers):
    noted = server.contact()
    assert readers.queues.get(QUEUE).clock_behind_seconds == 0
    server.set(noted - 600_000)

    assert readers.queues.get(QUEUE).clock_behind_seconds == 600
    server.contact()
    server.set(server.clock + 1_000_000)
    assert readers.queues.get(QUEUE).clock_behind_seconds == 500


elapsing = st.tuples(st.just("elapse"), st.integers(0, 20_000) | st.integers(0, 2 * HOUR_MS))
stepping = st.tuples(
    st.just("step"),
    st.integers(-20_000, 20_000) | st.integers(-HOUR_MS, HOUR_MS) | st.sampled_from((-HOUR_MS, -HOUR_MS - 1)),
)
forgetting = st.tuples(st.just("forget"), st.just(0))


@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(steps=st.lists(st.one_of(elapsing, elapsing, stepping, forgetting), min_size=1, max_size=12))
def test_whatever_clocks_do_time_never_goes_back_and_never_stands_still(server, steps):
    """`forget`: Redis loses what was written last, by a torn log."""
    server.redis.flushdb()
    server.set(BEGAN_MS)
    noted = [server.contact()]
    for verb, ms in steps:
        before, saved = server.now(), server.redis.hgetall(server.keys.clock)
        server.set(server.clock + ms)
        assert_sound(server, server.now(), noted[-1])
        if verb == "elapse":
            assert 0.9 * ms - 1 <= server.now() - before <= ms
        noted.append(server.contact())
        assert_sound(server, noted[-1], noted[-2])
        if verb == "forget":
            server.redis.hset(server.keys.clock, mapping=saved)
            noted.pop()
            assert_sound(server, server.now(), noted[-1])
            noted.append(server.contact())
    server.set(server.clock + 10 * HOUR_MS)
    assert server.now() == server.clock


def assert_sound(server, now, earlier):
    assert server.clock <= now < server.clock + HOUR_MS
    assert now >= earlier or server.clock <= earlier - HOUR_MS
