"""Commands out, replies in: what is loaded, what is sent again, and what is not."""

import socket
import threading
import time
from contextlib import suppress

import pytest
import redis as redis_py
from redis import exceptions as redis_exceptions

from django_rtq.core.broker.redis.client import translate_error
from django_rtq.core.broker.redis.speedups import _is_open
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerUnavailable
from tests.support.jobs import QUEUE, WORKER, claimed_job, queued_job, settlement
from tests.support.single_steps import renew
from tests.support.snapshots import live_jobs, place_of, snapshot
from tests.support.waiting import wait_until

COUNT = ("INCR", "rtq:counter")


def counted(redis):
    return int(redis.get("rtq:counter") or 0)


# Scripts that Redis does not know


@pytest.mark.parametrize("known", [[], ["settle"], ["claim"], ["settle", "claim"]])
def test_of_several_commands_each_is_done_once_whichever_are_known(redis, broker, known):
    done, following = claimed_job(broker), queued_job(broker)
    redis.script_flush()
    for name in known:
        redis.script_load(SCRIPTS[name].text)

    fetched = broker.claim(WORKER, [QUEUE], 1, settlements={QUEUE: settlement("ack", done)})

    assert (fetched.error, fetched.stale) == (None, [])
    assert [part.ids for part in fetched.claimed] == [[following.id.encode()]]
    assert set(live_jobs(redis)) == {following.id}
    assert snapshot(redis)["stats"]["succeeded"] == 1


def test_neighbours_of_an_unknown_script_are_not_done_twice(redis, broker):
    redis.script_flush()
    renew = SCRIPTS["renew"].call(broker.keys.of(QUEUE), (1000, "", 0))

    assert broker.redis.execute([COUNT, renew, COUNT]) == [1, [[-1, [], [], 0, -1]], 2]

    assert counted(redis) == 2


def test_a_script_that_cannot_be_loaded_is_an_error(redis, broker):
    redis.script_flush()
    redis.answer_once(b"-ERR no scripts today\r\n-NOSCRIPT No matching script.\r\n", around=b"LOAD")

    with pytest.raises(BrokerError, match="no scripts today"):
        renew(broker, [QUEUE], [])


# Errors


WILL_PASS = [
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "READONLY You can't write against a read only replica. script: 1f, on @user_script:1.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "CLUSTERDOWN The cluster is down",
    "CLUSTERDOWN Hash slot not served",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "ERR max number of clients reached",
    # As Redis 6.2 tells what a script ran into:
    "ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: "
    "-READONLY You can't write against a read only replica.",
]
FULL = [
    "OOM command not allowed when used memory > 'maxmemory'.",
    "OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:1.",
    "ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: "
    "-OOM command not allowed when used memory > 'maxmemory'.",
]
WILL_NOT_PASS = [
    "ERR something else",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "ERR Error running script: @user_script:9: attempt to index a nil value",
]


@pytest.mark.parametrize(
    ("kind", "words", "answer"),
    [
        *((BrokerUnavailable, "Redis", answer) for answer in WILL_PASS),
        *((BrokerFull, "maxmemory", answer) for answer in FULL),
        *((BrokerError, answer.split()[-1], answer) for answer in WILL_NOT_PASS),
    ],
)
def test_what_will_pass_and_a_full_memory_are_told_from_the_rest(redis, broker, kind, words, answer):
    redis.answer_once(f"-{answer}\r\n".encode())

    with pytest.raises(kind, match=words) as caught:
        claim_again(broker)

    assert caught.value.__cause__
    assert kind is not BrokerError or not isinstance(caught.value, BrokerUnavailable | BrokerFull)
    assert queued_job(broker)  # with the next connection


def claim_again(broker):
    result = broker.claim(WORKER, [QUEUE], 1)
    if result.error:
        raise result.error
    return result.claimed


def test_an_error_stands_in_the_place_of_its_command(redis, broker):
    redis.set("rtq:text", "x")

    first, second, third = broker.redis.execute_each([COUNT, ("LPUSH", "rtq:text", "y"), COUNT])

    assert (first, third) == (1, 2)
    assert isinstance(second, BrokerError)
    assert "WRONGTYPE" in str(second) or "wrong kind" in str(second)


def test_all_raises_the_first_error_and_one_its_own(redis, broker):
    redis.set("rtq:text", "x")

    with pytest.raises(BrokerError, match="wrong kind"):
        broker.redis.execute([COUNT, ("LPUSH", "rtq:text", "y"), COUNT])
    with pytest.raises(BrokerError, match="wrong kind"):
        broker.redis.execute_one(("LPUSH", "rtq:text", "y"))

    assert counted(redis) == 2


# What is sent again


@pytest.mark.parametrize(("moment", "done"), [("before", 0), ("after", 1)])
def test_nothing_is_sent_again_unless_it_may_be(redis, broker, moment, done):
    redis.drop_connection(moment, around=b"INCR")

    with pytest.raises(BrokerUnavailable):
        broker.redis.execute_one(COUNT)

    assert counted(redis) == done


@pytest.mark.parametrize(("moment", "done"), [("before", 1), ("after", 2)])
def test_what_may_be_sent_twice_is_sent_once_more(redis, broker, moment, done):
    redis.drop_connection(moment, around=b"INCR")

    assert broker.redis.execute_one(COUNT, resend=True) == done


def test_what_was_not_answered_in_time_is_not_sent_again(redis, broker, monkeypatch):
    monkeypatch.setitem(broker.redis.connections.pool.connection_kwargs, "socket_timeout", 0.05)
    redis.stay_silent_once(around=b"INCR")

    with pytest.raises(BrokerUnavailable, match="in time"):
        broker.redis.execute_one(COUNT, resend=True)

    assert counted(redis) == 0


def test_a_late_reply_is_not_taken_for_the_answer_to_another_question(redis, broker, monkeypatch):
    with monkeypatch.context() as impatient:
        impatient.setitem(broker.redis.connections.pool.connection_kwargs, "socket_timeout", 0.05)
        with pytest.raises(BrokerUnavailable, match="in time"):
            broker.redis.execute_one(("BLPOP", "rtq:nothing", 0.1))
    time.sleep(0.2)  # the late reply has come, if its connection is still open

    assert broker.redis.execute_one(("ECHO", "mine")) == b"mine"


class Interrupted(BaseException):
    """As a time limit, or a cancellation, in the midst of a call."""


def test_the_reply_to_an_interrupted_question_is_not_taken_for_the_answer_to_another(redis, broker, monkeypatch):
    broker.redis.execute_one(COUNT)
    (connection,) = broker.redis.connections._idle

    def interrupt():
        raise Interrupted

    with monkeypatch.context() as interrupted:
        interrupted.setattr(connection, "read_response", interrupt)
        with pytest.raises(Interrupted):
            broker.redis.execute_one(("ECHO", "theirs"))

    assert broker.redis.execute_one(("ECHO", "mine")) == b"mine"
    assert broker.redis.execute_one(("ECHO", "mine too")) == b"mine too"


@pytest.mark.parametrize("resend", [False, True])
def test_a_connection_that_was_lost_shows_although_the_command_succeeds(redis, broker, resend):
    broker.redis.execute_one(COUNT)
    before = broker.redis.connections.connections_lost
    broker.redis.execute_one(COUNT, resend=resend)
    assert broker.redis.connections.connections_lost == before
    redis.client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: not any(map(_is_open, broker.redis.connections._idle)))

    assert broker.redis.execute_one(COUNT, resend=resend) == 3
    assert broker.redis.connections.connections_lost != before


def test_nor_do_several_that_were_cut_for_what_may_be_sent_twice(redis, broker):
    connections = [broker.redis.connections.take(is_checked=False) for _ in range(3)]
    broker.redis.connections._idle.extend(connections)
    redis.client_kill_filter(_type="normal", skipme=True)

    job = queued_job(broker)

    assert place_of(redis, job) == "lane:0:"
    assert broker.redis.execute_one(COUNT) == 1


def test_closed_it_may_be_used_again(redis, broker):
    broker.redis.execute_one(COUNT)
    broker.close()
    broker.close()

    assert broker.redis.execute_one(COUNT) == 2


def test_connecting_that_takes_too_long_names_what_to_check():
    error = translate_error(redis_exceptions.TimeoutError("Timeout connecting to server"))

    assert type(error) is BrokerUnavailable
    assert str(error) == (
        "Redis cannot be reached: connecting took too long. Check address and firewall, and for a rediss:// URL that "
        "the port speaks TLS."
    )


def close_all(server):
    """Close each connection to this server, until it is closed itself."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def test_an_error_without_an_address_gets_that_of_the_server():
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closing:
        threading.Thread(target=close_all, args=[closing], daemon=True).start()
        for server in (silent, closing):
            address = f"127.0.0.1:{server.getsockname()[1]}"
            broker = WorkerBroker(Config(redis=f"redis://{address}/0", socket_timeout=0.2, socket_connect_timeout=0.2))
            with pytest.raises(BrokerUnavailable) as caught:
                broker.redis.execute_one(("PING",))
            assert str(caught.value).count(address) == 1
            broker.close()


@pytest.mark.parametrize(
    ("connection", "address"),
    [
        (redis_py.Connection(host="10.0.0.1", port=7), "10.0.0.1:7"),
        (redis_py.UnixDomainSocketConnection(path="/run/redis.sock"), "/run/redis.sock"),
    ],
)
def test_an_error_of_a_connection_that_was_made_gets_its_address(connection, address):
    for error in (redis_exceptions.TimeoutError("Timeout reading from socket"), OSError("broken pipe")):
        assert str(translate_error(error, connection)).endswith(f" ({address})")
