"""rtq: what it shows, to people and to programs."""

from dataclasses import asdict
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.test import override_settings

from django_rtq.console import commands
from django_rtq.console.commands import rtq
from django_rtq.databases.outbox import OutboxLag
from tests.support.commands import Terminal, body, dead_letter, run
from tests.support.jobs import claimed_job, queued_job, retrying_job, scheduled_job
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import server_ms


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """The queues that tasks declare."""
    names = ["default"]
    monkeypatch.setattr("django_rtq.console.incidents.workers.declared_queues", lambda place: names)
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
    note = {"host": "web1", "pid": 4711, "queues": "default,bulk", "kept_ms": 60_000, "jobs_done": 1234, "slots": 4}
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

    monkeypatch.setattr(rtq, "sleep", nap)
    return taken


def test_json_has_what_lists_of_queues_and_workers_have_and_more(redis, busy, began):
    shown = run("rtq", "--json").json
    (queue,), (worker,), (job,) = shown["queues"], shown["workers"], shown["workers"][0]["running"]
    told = {"queued": 2, "scheduled": 1, "retrying": 1, "running": 1, "dead": 1, "clients": 2, "paused": False}
    assert queue.items() >= told.items()
    assert queue.keys() == run("rtq_queues", "list", "--json").json[0].keys()
    assert worker.items() >= {"host": "web1", "pid": 4711, "queues": ["default", "bulk"], "jobs_done": 1234}.items()
    assert worker.keys() == run("rtq_workers", "list", "--json").json[0].keys()
    ages = (queue["oldest_seconds"], queue["contact_seconds"], worker["last_seen_seconds"], job.pop("seconds"))
    assert all(0 <= age <= (server_ms(redis) - began) / 1000 for age in ages)
    of_job = {"id": busy.id, "queue": "default", "task": "shop.tasks.send_mail", "client": "acme", "attempt": 1}
    assert job == of_job | {"progress": None, "is_stopping": False}
    assert {"no_scheduler", "dead_letters"} <= {each["kind"] for each in shown["incidents"]}
    assert (shown["outbox"], shown["unserved"]) == (None, [])
    assert shown["server"].keys() == {
        *("name", "version", "used_memory", "max_memory", "eviction_policy", "connections", "max_connections"),
        "warnings",
    }
    assert shown["server"]["warnings"] == ["volatile"]  # as the server of the tests is


def test_the_tables_are_aligned(busy):
    lines = run("rtq", "--no-color").out.splitlines()

    assert lines[0] == "QUEUE    STATE  QUEUED  SCHEDULED  RETRYING  RUNNING  DEAD  OLDEST WAIT  CLIENTS"
    assert lines[1].split()[:7] == ["default", "open", "2", "1", "1", "1", "1"]
    assert lines[3].split() == ["WORKER", "HOST", "PID", "QUEUES", "LAST", "SEEN", "JOBS", "DONE", "RUNS"]
    assert lines[4].startswith("host-1-a  web1  4711  default,bulk ")
    assert "1,234  shop.tasks.send_mail for " in lines[4]
    assert lines[4].index("shop.tasks") == lines[3].index("RUNS")
    assert lines[6] == "1 worker on 1 host: 1 of 4 slots busy."


def test_what_a_job_says_of_itself_is_shown_and_that_it_is_to_stop(busy, broker, readers, access):
    (worker,) = readers.workers()
    broker.report_progress(worker.name, [("default", busy.id, '{"done":3,"total":10,"text":"pages"}')])
    access.cancel(busy.id)

    assert run("rtq").out.splitlines()[4].endswith(", 3/10 pages, asked to stop")
    (running,) = run("rtq", "--json").json["workers"][0]["running"]
    assert running["is_stopping"] is True
    assert running["progress"].items() >= {"done": 3, "total": 10}.items()


def test_a_worker_that_left_no_note_was_not_last_seen_in_1970(broker):
    broker.register_queues(["default"])
    broker.sign_on(["default"], "new")

    assert run("rtq", "--json").json["workers"][0]["last_seen_seconds"] is None
    assert run("rtq").out.splitlines()[4].split() == ["new", "default", "-", "0", "-"]


def test_nothing_at_all_is_said_in_words(broker):
    text = run("rtq").out

    assert text.startswith("No queue has been used yet. ")
    assert "\n\nNo worker is alive. Start one:  python manage.py rtq_worker\n\n" in text
    shown = run("rtq", "--json").json
    assert (shown["queues"], shown["workers"]) == ([], [])


def test_only_the_queues_that_were_named_are_shown(broker):
    broker.register_queues(["high", "low", "default"])

    shown = run("rtq", "--json", "--queues", "low, high").json["queues"]

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

    ran = run("rtq", "--queues", named)

    assert (ran.code, ran.out) == (code, "")
    assert ran.error.startswith(message)


def test_the_error_about_such_a_queue_begins_as_any_other(broker):
    with pytest.raises(CommandError) as caught:
        call_command("rtq", "--queues", "x")

    assert type(caught.value) is CommandError  # Django prints its name


def test_watching_ends_with_ctrl_c_and_without_an_error(broker, naps):
    ran = run("rtq", "--watch")

    assert (ran.code, naps) == (0, [2.0, 2.0, 2.0])
    assert ran.out.count("No worker is alive") == 3
    assert "\x1b" not in ran.out


def test_watching_at_a_terminal_draws_over_the_last_picture(broker, naps):
    ran = run("rtq", "--watch", "0.5", out=Terminal())

    assert ran.out.count("\x1b[H\x1b[2J") == 3
    assert "Every 0.5 s; stop with Ctrl-C." in ran.out
    assert naps == [0.5, 0.5, 0.5]


def test_watching_outlives_an_outage_of_redis(redis, broker, naps, monkeypatch):
    broker.register_queues(["default"])
    nap = rtq.sleep

    def nap_while_redis_goes_away(seconds):
        if not naps:
            redis.answer_once(b"-LOADING Redis is loading the dataset in memory\r\n")
        nap(seconds)

    monkeypatch.setattr(rtq, "sleep", nap_while_redis_goes_away)
    ran = run("rtq", "--watch", "0.5")

    assert (ran.code, ran.out.count("default")) == (0, 2)
    assert ran.err == "Redis cannot serve now: Redis is loading the dataset in memory\n"


def test_queues_that_nobody_serves_are_told(broker, busy, declared):
    declared += ["calls"]
    queued_job(broker, queue="late")
    broker.register_queues(["empty"])

    assert run("rtq", "--json").json["unserved"] == ["calls", "late"]
    assert "critical queue_unserved: Queue late: 1 job waits" in run("rtq").out
    assert "queue_unserved" not in run("rtq", "--queues", "default").out


def test_each_command_has_a_door_in_management():
    modules = {path.stem for path in Path(commands.__file__).parent.glob("rtq*.py")}
    assert modules <= get_commands().keys()


def test_it_says_what_every_command_does(broker):
    lines = run("rtq").out.splitlines()
    ours = sorted(name for name, app in get_commands().items() if app == "django_rtq")
    said = {line.split()[0]: line.partition(" ")[2].strip() for line in lines if line.startswith("rtq")}
    assert list(said) == ours
    assert said["rtq_worker"] == "Run the jobs of one or more queues"
    assert all(said.values())
    assert "COMMAND" not in run("rtq", "--queues", "default").out


def test_of_many_incidents_the_worst_are_shown(broker, monkeypatch):
    monkeypatch.setattr(rtq, "MOST_INCIDENTS", 1)
    queued_job(broker)
    lines = run("rtq").out.splitlines()
    assert len([line for line in lines if line.startswith(("critical", "warning"))]) == 1
    assert "1 more incident:  python manage.py rtq --check" in lines


@pytest.mark.parametrize(
    "arguments", ["--check --queues default", "--check --watch", "--this-host", "--max-oldest 5", "--this-host --json"]
)
def test_options_that_do_not_go_together(broker, arguments):
    assert (run("rtq", *arguments.split()).code, run("rtq", *arguments.split()).out) == (64, "")


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
    monkeypatch.setattr("django_rtq.console.incidents.outbox_lag", lambda place: lag)
    found = [line for line in run("rtq").out.splitlines() if line.startswith("Outbox")]
    assert found == ([text] if text else [])
    assert run("rtq", "--json").json["outbox"] == (asdict(lag) if lag else None)


def test_the_outbox_is_shown_when_redis_is_away(monkeypatch):
    monkeypatch.setattr(rtq, "outbox_lag", lambda place: OutboxLag(jobs=7, oldest_seconds=3.2))
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        shown = run("rtq")
    assert shown.code == 1
    assert "cannot be reached" in shown.error
    assert "rtq_worker" in shown.out
    assert "Outbox: 7 jobs, the oldest for 3.2 s" in shown.err
