"""rtq_status: what it shows, to people and to programs."""

import re
from dataclasses import asdict

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_rtq.console.commands import rtq_status
from django_rtq.databases.outbox import OutboxLag
from tests.support.commands import Terminal, body, dead_letter, run
from tests.support.jobs import claimed_job, queued_job, retrying_job, scheduled_job
from tests.support.redis_server import UNREACHABLE
from tests.support.server_clock import server_ms


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """The queues that tasks declare."""
    names = ["default"]
    monkeypatch.setattr(rtq_status, "declared_queues", lambda: names)
    return names


@pytest.fixture
def began(redis):
    """The server's time before all jobs, ms."""
    return server_ms(redis)


@pytest.fixture
def busy(redis, broker, began):
    """A queue with a job in every place, and a worker that left a note."""
    dead_letter(broker)
    retrying_job(broker)
    running = claimed_job(broker, worker="host-1-a", client="acme", body=body("shop.tasks.send_mail"))
    scheduled_job(broker)
    queued_job(broker, client="a")
    queued_job(broker, client="b")
    note = {"host": "web1", "pid": 4711, "queues": "default,bulk", "kept_ms": 60_000, "jobs_done": 1234}
    redis.hset("rtq:worker:host-1-a", mapping=note)
    redis.pexpire("rtq:worker:host-1-a", 60_000)
    redis.zadd("rtq:workers", {"host-1-a": 1})
    return running


@pytest.fixture
def naps(monkeypatch):
    """Watching takes no time, and Ctrl-C comes at the third pause."""
    taken = []

    def nap(seconds):
        taken.append(seconds)
        if len(taken) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(rtq_status, "sleep", nap)
    return taken


def test_json_has_these_names_and_no_others(redis, busy, began):
    shown = run("rtq_status", "--json").json
    (queue,), (worker,), server = shown["queues"], shown["workers"], shown.pop("server")
    oldest, seen = queue.pop("oldest_seconds"), worker.pop("last_seen_seconds")
    seconds, contact = worker["running"][0].pop("seconds"), queue.pop("contact_seconds")
    assert shown.pop("outbox") is None
    assert shown == {
        "queues": [
            {
                **{"name": "default", "paused": False},
                "queued": 2,
                "scheduled": 1,
                "retrying": 1,
                "running": 1,
                **{"dead": 1, "clients": 2},
                **{"finished": 0, "scheduler_seconds": None, "clock_behind_seconds": 0.0, "paused_seconds": None},
                **{"lost": 0, "lost_seconds": None},
                **{"paused_tasks": [], "paused_clients": [], "zero_limits": []},
                **{"is_at_limit": False, "is_at_rate": False},
            }
        ],
        "unserved": [],
        "workers": [
            {
                "name": "host-1-a",
                "host": "web1",
                "pid": 4711,
                "queues": ["default", "bulk"],
                "running": [
                    {"id": busy.id, "queue": "default", "task": "shop.tasks.send_mail", "client": "acme", "attempt": 1}
                    | {"progress": None, "is_stopping": False}
                ],
                "jobs_done": 1234,
                "supervisor_name": "",
                "is_quiet": False,
                "crash_loop": "",
            }
        ],
    }
    assert all(0 <= age <= (server_ms(redis) - began) / 1000 for age in (oldest, seen, seconds, contact))
    assert server.keys() == {
        *("name", "version", "used_memory", "max_memory", "eviction_policy", "connections", "max_connections"),
        "warnings",
    }
    assert server["warnings"] == ["volatile"]  # as the server of the tests is


def test_the_tables_are_aligned(busy):
    lines = run("rtq_status", "--no-color").out.splitlines()

    assert lines[0] == "QUEUE    STATE  QUEUED  SCHEDULED  RETRYING  RUNNING  DEAD  OLDEST  CLIENTS"
    assert lines[1].split()[:7] == ["default", "open", "2", "1", "1", "1", "1"]
    assert lines[3].split() == ["WORKER", "HOST", "PID", "QUEUES", "LAST", "SEEN", "DONE", "RUNS"]
    assert lines[4].startswith("host-1-a  web1  4711  default,bulk ")
    assert "1,234  shop.tasks.send_mail for " in lines[4]
    assert lines[4].index("shop.tasks") == lines[3].index("RUNS")


def test_what_a_job_says_of_itself_is_shown_and_that_it_is_to_stop(busy, broker, inspector):
    (worker,) = inspector.workers()
    broker.report_progress(worker.name, [("default", busy.id, '{"done":3,"total":10,"text":"pages"}')])
    inspector.cancel(busy.id)

    assert run("rtq_status").out.splitlines()[4].endswith(", 3/10 pages, asked to stop")
    (running,) = run("rtq_status", "--json").json["workers"][0]["running"]
    assert running["is_stopping"] is True
    assert running["progress"].items() >= {"done": 3, "total": 10}.items()


def test_a_clock_that_was_put_back_is_told(busy, redis, broker):
    assert "clock" not in run("rtq_status").out
    high = server_ms(redis) + 600_000
    redis.hset(broker.keys.of("default").clock, mapping={"high": high, "anchor": ""})

    assert "was put back and is 10 min behind" in run("rtq_status").out
    behind = run("rtq_status", "--json").json["queues"][0]["clock_behind_seconds"]
    assert (high - server_ms(redis)) / 1000 <= behind <= 600


def test_a_paused_queue_is_shown_as_such(busy, inspector):
    inspector.pause("default")

    assert " paused " in run("rtq_status").out
    assert run("rtq_status", "--json").json["queues"][0]["paused"] is True


def test_a_worker_that_left_no_note_was_not_last_seen_in_1970(broker):
    broker.register_queues(["default"])
    broker.sign_on(["default"], "new")

    assert run("rtq_status", "--json").json["workers"][0]["last_seen_seconds"] is None
    assert run("rtq_status").out.splitlines()[4].split() == ["new", "-", "-", "default", "-", "0", "-"]


def test_nothing_at_all_is_said_in_words(broker):
    text = run("rtq_status").out

    assert text.startswith("No queue has been used yet. ")
    assert "\n\nNo worker is alive. Start one:  python manage.py rtq_worker\n\n" in text
    assert empty(run("rtq_status", "--json").json)


def empty(shown):
    return {name: shown[name] for name in ("queues", "workers")} == {"queues": [], "workers": []}


def test_what_endangers_jobs_is_shown(redis, broker):
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        lines = run("rtq_status", "--no-color").out.splitlines()
        warnings = run("rtq_status", "--json").json["server"]["warnings"]
    finally:
        redis.config_set("maxmemory-policy", "noeviction")

    assert lines[-2:] == [
        "Warning: Redis deletes keys, and with them jobs, when it is full (maxmemory-policy allkeys-lru). "
        "Set maxmemory-policy to noeviction.",
        "Warning: Redis does not keep an append-only file: jobs may be lost when it restarts. Set appendonly yes.",
    ]
    assert warnings == ["evicts", "volatile"]


def test_only_the_queues_that_were_named_are_shown(broker):
    broker.register_queues(["high", "low", "default"])

    shown = run("rtq_status", "--json", "--queues", "low, high").json["queues"]

    assert [queue["name"] for queue in shown] == ["low", "high"]


@pytest.mark.parametrize(
    ("named", "code", "message"),
    [
        ("hihg", 1, "No queue 'hihg' is declared, or has been used yet. Did you mean 'high'?"),
        ("x", 1, "No queue 'x' is declared, or has been used yet. Known are: "),
        (",", 64, "--queues is empty: write for example --queues high,default"),
    ],
)
def test_a_queue_that_nobody_used_is_a_slip(broker, named, code, message):
    broker.register_queues(["high", "low"])

    ran = run("rtq_status", "--queues", named)

    assert (ran.code, ran.out) == (code, "")
    assert ran.error.startswith(message)


def test_the_error_about_such_a_queue_begins_as_any_other(broker):
    with pytest.raises(CommandError) as caught:
        call_command("rtq_status", "--queues", "x")

    assert type(caught.value) is CommandError  # Django prints its name


def test_names_that_jobs_brought_along_cannot_move_the_cursor(broker):
    claimed_job(broker, body=body("evil\x1b[2J\n\u202etask"))

    assert "evil\\x1b[2J\\n\\u202etask for " in run("rtq_status").out


def test_watching_ends_with_ctrl_c_and_without_an_error(broker, naps):
    ran = run("rtq_status", "--watch")

    assert (ran.code, naps) == (0, [2.0, 2.0, 2.0])
    assert ran.out.count("No worker is alive") == 3
    assert "\x1b" not in ran.out


def test_watching_at_a_terminal_draws_over_the_last_picture(broker, naps):
    ran = run("rtq_status", "--watch", "0.5", out=Terminal())

    assert ran.out.count("\x1b[H\x1b[2J") == 3
    assert "Every 0.5 s; stop with Ctrl-C." in ran.out
    assert naps == [0.5, 0.5, 0.5]


def test_watching_outlives_an_outage_of_redis(redis, broker, naps, monkeypatch):
    broker.register_queues(["default"])
    nap = rtq_status.sleep

    def nap_while_redis_goes_away(seconds):
        if not naps:
            redis.answer_once(b"-LOADING Redis is loading the dataset in memory\r\n")
        nap(seconds)

    monkeypatch.setattr(rtq_status, "sleep", nap_while_redis_goes_away)
    ran = run("rtq_status", "--watch", "0.5")

    assert (ran.code, ran.out.count("default")) == (0, 2)
    assert ran.err == "Redis cannot serve now: Redis is loading the dataset in memory\n"


def test_queues_that_nobody_serves_are_told_with_the_cure(broker, busy, declared):
    declared += ["calls"]
    queued_job(broker, queue="late")
    broker.register_queues(["empty"])

    assert run("rtq_status").out.splitlines()[-3:-2] == [
        "No worker serves queues calls, late. Start one:  python manage.py rtq_worker --queues calls,late"
    ]
    assert run("rtq_status", "--json").json["unserved"] == ["calls", "late"]
    assert "No worker serves" not in run("rtq_status", "--queues", "default").out


# -- the outbox


@pytest.mark.parametrize(
    ("lag", "text"),
    [
        (None, None),
        (OutboxLag(jobs=0, oldest_seconds=0.0), "Outbox: empty"),
        (OutboxLag(jobs=1, oldest_seconds=3.2), "Outbox: 1 job, the oldest for 3.2 s"),
        (OutboxLag(jobs=1, oldest_seconds=3.2, oldest_error="a\nb"), "Outbox: 1 job, the oldest for 3.2 s: a\\nb"),
        (OutboxLag(jobs=100_000, oldest_seconds=60.0), "Outbox: 100,000 jobs or more, the oldest for 60 s"),
        (OutboxLag(jobs=0, oldest_seconds=0.0, error="no\ntable"), "Outbox: the database did not answer: no\\ntable"),
    ],
)
def test_the_outbox(broker, monkeypatch, lag, text):
    monkeypatch.setattr(rtq_status, "outbox_lag", lambda: lag)
    found = [line for line in run("rtq_status").out.splitlines() if line.startswith("Outbox")]
    assert found == ([text] if text else [])
    assert run("rtq_status", "--json").json["outbox"] == (asdict(lag) if lag else None)


def test_between_two_short_lived_processes_no_worker_is_missing(broker):
    broker.sign_on(["default"], "w1")
    broker.register_queues(["default"])
    broker.sign_off(["default"], "w1")

    found = r"No worker process is signed on at this moment\. A worker or scheduler was there \d+(\.\d)? s"
    assert re.search(found, run("rtq_status").out)


def test_the_outbox_is_shown_when_redis_is_away(monkeypatch):
    monkeypatch.setattr(rtq_status, "outbox_lag", lambda: OutboxLag(jobs=7, oldest_seconds=3.2))
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        shown = run("rtq_status")
    assert shown.code == 1
    assert "Outbox: 7 jobs, the oldest for 3.2 s" in shown.err
