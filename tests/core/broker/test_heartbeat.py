"""All that a supervisor does each few seconds."""

from types import SimpleNamespace

import pytest

from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import name_of
from django_rtq.core.broker.worker_broker import TENDED_IN_A_LEASE, WorkerBroker, earliest_seconds, read_cancel_requests
from tests.support.jobs import QUEUE, WORKER, asked_job, claimed_job, let_fall_due, let_lapse, queued_job, scheduled_job
from tests.support.redis_server import LEASE_SECONDS
from tests.support.snapshots import changes, snapshot

NOTE = {WORKER: {"host": "h", "jobs_done": 3}}


@pytest.fixture
def _worker(broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    let_lapse(broker, WORKER)
    let_lapse(broker, WORKER, queue="low")


def beat(broker, notes=NOTE, *, promote=True):
    """One beat for two queues, and what it finds to tend."""
    renewed, _ = broker.heartbeat([QUEUE, "low"], notes, promote=promote)
    promoted, lost, _ = broker.tend(renewed)
    expired = [queue for queue, of_queue in renewed.items() if of_queue.lease_ms == 0]
    return SimpleNamespace(seconds=earliest_seconds(renewed.values()), expired=expired, promoted=promoted, lost=lost)


def sent_commands(monkeypatch):
    """The names of the commands that are sent from now on."""
    sent, execute = [], RedisClient.execute_each

    def recorded(self, commands, **options):
        sent.extend(name_of(command) for command in commands)
        return execute(self, commands, **options)

    monkeypatch.setattr(RedisClient, "execute_each", recorded)
    return sent


@pytest.mark.usefixtures("_worker")
def test_leases_are_renewed_and_queues_are_named(redis, broker):
    renewed, replies = broker.heartbeat([QUEUE, "low"], NOTE, promote=True)
    assert (renewed, replies) == (dict.fromkeys([QUEUE, "low"], (LEASE_SECONDS * 1000, [], [], 0, -1)), {})

    assert snapshot(redis)["rtq:queues"] == {QUEUE, "low"}


@pytest.mark.usefixtures("_worker")
def test_who_was_noted_is_in_an_index_and_who_was_not_for_long_leaves_it(redis, broker):
    redis.zadd("rtq:workers", {"long gone": 1})

    beat(broker)

    assert redis.zrange("rtq:workers", 0, -1) == [WORKER.encode()]


@pytest.mark.usefixtures("_worker")
@pytest.mark.parametrize("promote", [True, False])
def test_what_is_due_is_promoted_by_who_is_asked_to(redis, broker, promote):
    job = scheduled_job(broker)
    let_fall_due(broker, job)

    assert beat(broker, promote=promote).promoted == ({QUEUE: [job.id]} if promote else {})
    assert ("scheduled" in snapshot(redis)) is not promote


@pytest.mark.usefixtures("_worker")
def test_a_repair_goes_on_whichever_supervisor_comes_next(redis, broker):
    for number in range(101):
        queued_job(broker, client=str(number))
    clock = broker.keys.of(QUEUE).clock

    for start in (b"100", b"0", b"100"):
        other = WorkerBroker(broker.config)
        other.tend(other.heartbeat([QUEUE], {}, promote=True)[0])
        assert redis.hget(clock, "repaired") == start
        redis.hdel(clock, "tended")


def test_of_many_supervisors_one_tends_a_queue(broker, monkeypatch):
    broker.sign_on([QUEUE], WORKER)
    job = scheduled_job(broker)
    beat(broker)
    let_fall_due(broker, job)
    sent = sent_commands(monkeypatch)

    assert beat(broker).promoted == {}  # it was tended just now
    assert [name for name in sent if "EVALSHA" in name] == ["EVALSHA renew"]

    broker.redis.execute_one(("HDEL", broker.keys.of(QUEUE).clock, "tended"))
    assert beat(broker).promoted == {QUEUE: [job.id]}


def let_pause_pass(redis, broker):
    """As if the last supervisor that tended the queue had done so a fifteenth of a lease ago."""
    redis.hincrby(broker.keys.of(QUEUE).clock, "tended", -broker.lease_ms // TENDED_IN_A_LEASE)


def test_when_one_dies_that_had_begun_to_tend_the_next_one_does_it(redis, broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    job = scheduled_job(broker)
    let_fall_due(broker, job)
    broker.redis.execute(broker.renew_commands([QUEUE], ["w2"], tends="tended"))  # and no more

    assert beat(broker).promoted == {}
    let_pause_pass(redis, broker)
    assert beat(broker).promoted == {QUEUE: [job.id]}


@pytest.mark.usefixtures("_worker")
def test_one_that_was_stopped_while_it_tended_and_goes_on_later_changes_nothing(redis, broker):
    let_fall_due(broker, scheduled_job(broker))
    ((*_, has_due, start),) = broker.redis.execute_one(broker.renew_commands([QUEUE], ["w2"], tends="tended")[0])
    let_pause_pass(redis, broker)
    beat(broker)
    before = snapshot(redis)

    late = broker.redis.execute([broker.promote_command(QUEUE), broker.repair_command(QUEUE, 0)])

    after = snapshot(redis)
    assert (has_due, start) == (1, 0)
    assert (late[0][1:], late[1]) == ([], [0, 0])
    assert changes(before, after).keys() <= {"clock"}  # when it was promoted last


@pytest.mark.usefixtures("_worker")
def test_lost_jobs_that_nobody_heard_of_are_counted_again(redis, broker):
    clock = broker.keys.of(QUEUE).clock
    queued_job(broker)
    redis.delete(broker.keys.of(QUEUE).lane + b"0:")

    for lost in ({QUEUE: 1}, {}):  # its supervisor dies before it repairs them
        assert beat(broker).lost == lost
        let_pause_pass(redis, broker)
    redis.hincrby(clock, "counted", -broker.lease_ms)
    assert beat(broker).lost == {QUEUE: 1}


@pytest.mark.usefixtures("_worker")
def test_whoever_comes_first_when_a_lease_has_ended_says_in_which_queue(redis, broker):
    claimed_job(broker, worker="dead")
    assert beat(broker).expired == []

    redis.zadd(broker.keys.of(QUEUE).workers, {"dead": 1})
    assert beat(broker).expired == []  # nobody can know that it was put back
    redis.hset(broker.keys.of(QUEUE).clock, "first_end", 1)
    assert beat(broker).expired == [QUEUE]


@pytest.mark.usefixtures("_worker")
def test_a_full_server_refuses_the_notes_but_not_the_leases(redis, broker):
    job = scheduled_job(broker)
    let_fall_due(broker, job)

    with redis.full_memory():
        found = beat(broker)
    assert (found.seconds, found.expired, found.promoted) == (LEASE_SECONDS, [], {QUEUE: [job.id]})

    assert "rtq:worker:w1" not in snapshot(redis)


def test_a_worker_can_be_found_before_its_cancel_requests_are_read(broker, monkeypatch):
    """Else nobody wakes its supervisor for a cancellation that comes between the two."""
    sent = sent_commands(monkeypatch)

    beat(broker)

    assert sent.index("HSET") < sent.index("EVALSHA renew")


def test_the_supervisor_hears_which_of_its_own_jobs_are_to_stop(broker, access):
    job, other = asked_job(broker, "a"), claimed_job(broker, "b", worker="w2")
    access.cancel(other.id, terminate=True)

    notes = {WORKER: {}, "w3": {}}
    renewed, _ = broker.heartbeat([QUEUE, "low"], notes, promote=False)
    of_other, _ = broker.heartbeat([QUEUE], {"w2": {}}, promote=False)

    assert read_cancel_requests(renewed.values()) == {(WORKER, job.id): "ask"}
    assert read_cancel_requests(of_other.values()) == {("w2", other.id): "terminate"}
