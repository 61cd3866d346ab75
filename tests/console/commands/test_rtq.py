"""rtq: the overview in short, and the list of commands."""

from pathlib import Path

from django.core.management import get_commands
from django.test import override_settings

from django_rtq.console import commands
from tests.support.commands import body, dead_letter, run
from tests.support.jobs import claimed_job, queued_job, retrying_job
from tests.support.redis_server import UNREACHABLE


def lines_of(ran):
    return [" ".join(line.split()) for line in ran.out.splitlines()]


def test_each_command_has_a_door_in_management():
    modules = {path.stem for path in Path(commands.__file__).parent.glob("rtq*.py")}
    assert modules <= get_commands().keys()


def test_it_shows_the_queues_the_workers_and_what_is_wrong(redis, broker):
    dead_letter(broker)
    retrying_job(broker)
    claimed_job(broker, worker="host-1-a", body=body("shop.tasks.send_mail"))
    queued_job(broker)
    queued_job(broker)
    note = {"host": "web1", "pid": 4711, "queues": "default", "kept_ms": 60_000, "slots": 4}
    redis.hset("rtq:worker:host-1-a", mapping=note)
    redis.pexpire("rtq:worker:host-1-a", 60_000)
    redis.zadd("rtq:workers", {"host-1-a": 1})

    ran = run("rtq")

    lines = lines_of(ran)
    assert lines[0] == "QUEUE STATE QUEUED RETRYING RUNNING DEAD OLDEST"
    assert lines[1].startswith("default open 2 1 1 1 ")
    assert "1 worker on 1 host: 1 of 4 slots busy." in lines
    assert any(line.startswith("warning redis_volatile: ") for line in lines)
    assert (ran.code, ran.err) == (0, "")


def test_an_unused_redis_says_how_to_begin(redis, broker):
    text = run("rtq").out
    assert "No queue has been used yet." in text
    assert text.count("rtq_worker\n") >= 1


def test_it_says_what_every_command_does(redis, broker):
    lines = run("rtq").out.splitlines()
    ours = sorted(name for name, app in get_commands().items() if app == "django_rtq")
    said = {line.split()[0]: line.partition(" ")[2].strip() for line in lines if line.startswith("rtq")}
    assert list(said) == ours
    assert said["rtq_worker"] == "Run the jobs of one or more queues"
    assert all(said.values())


def test_of_many_incidents_the_worst_are_shown(redis, broker, monkeypatch):
    monkeypatch.setattr("django_rtq.console.commands.rtq.MOST_INCIDENTS", 1)
    queued_job(broker)
    lines = lines_of(run("rtq"))
    assert len([line for line in lines if line.startswith(("critical", "warning"))]) == 1
    assert "1 more incident: python manage.py rtq_check" in lines


def test_without_redis_it_still_lists_the_commands():
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        ran = run("rtq")
    assert ran.code == 1
    assert "cannot be reached" in ran.error
    assert "rtq_worker" in ran.out
