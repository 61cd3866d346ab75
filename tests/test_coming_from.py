"""The guide for those who come from another queue: what it says to write now works."""

import re
import shlex
import sys
from datetime import timedelta
from types import ModuleType, SimpleNamespace

import pytest
from django.core.management import load_command_class
from django.utils import timezone

import django_rtq
from django_rtq import testing
from django_rtq.core.broker.redis.settings import read_connection_settings
from django_rtq.core.commands.worker_setup import queue_names
from django_rtq.core.conf.config import read_config
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.core.tasks import registry
from django_rtq.models import Schedule
from tests.app.tasks import note
from tests.markdown import blocks, read, rows, section

PAGE = read("docs/coming-from.md")
QUEUES = re.findall(r"^## (.*)$", PAGE, re.M)
ROWS = [(name, *row) for name in QUEUES for row in rows(section(PAGE, f"## {name}"))]
CODE = [(name, code) for name, _, now in ROWS for code in re.findall(r"`([^`]+)`", now)]


@pytest.fixture
def module(broker, monkeypatch):
    """A module of tasks, with a job that was enqueued."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    made = ModuleType("shop.tasks")
    vars(made).update({name: getattr(django_rtq, name) for name in django_rtq.__all__})
    exec("@task\ndef charge(order_id): ...\n@task\ndef mail(order_id): ...\n", vars(made))
    vars(made).update(
        job=made.charge.delay(1),
        tomorrow=timezone.now() + timedelta(days=1),
        ids=[1, 2],
        timedelta=timedelta,
        eager=testing.eager,
        drain=testing.drain,
    )
    made.job_id = made.job.id
    with django_rtq.workflow("what comes after what") as made.flow:
        yield made


def parse_command(line):
    """The line is one that a command of manage.py understands."""
    _, name, *arguments = shlex.split(line)
    options = load_command_class("django_rtq", name).create_parser("manage.py", name).parse_args(arguments)
    if name == "rtq_worker":
        assert all(map(is_queue_name, queue_names(options.queues)))


@pytest.mark.parametrize(("queue", "code"), CODE, ids=[f"{queue}: {code}" for queue, code in CODE])
def test_what_you_write_now_runs(module, queue, code, monkeypatch):
    if code.startswith("manage.py"):
        parse_command(code)
    elif code.startswith("@"):
        exec(f"{code}\ndef another(): ...\n", vars(module))
        assert module.another.delay()
    elif code.startswith("raise "):
        with pytest.raises((django_rtq.Retry, django_rtq.JobCancelled)):
            exec(code, vars(module))
    elif code.startswith("job.get("):
        with testing.eager():
            done = module.charge.delay(7)
            assert eval(code, {"job": done}) is None
    elif code == "eager()":
        with eval(code, vars(module)):
            assert module.charge.delay(7).state is django_rtq.JobState.SUCCEEDED
    else:
        exec(code, vars(module))
    if code == "drain()":
        assert module.job.state is django_rtq.JobState.SUCCEEDED
    if code.startswith("RTQ ="):
        assert "localhost:6379" in str(read_connection_settings(read_config(module.RTQ, debug=False)))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS])
def test_every_row_has_code_or_a_page(row):
    _, before, now = row
    assert before
    assert re.search(r"`[^`]+`|\]\(.*\.md\)", now)


def test_each_queue_has_its_table():
    assert QUEUES == ["Celery", "RQ and django-rq", "huey", "dramatiq", "Other backends of django.tasks"]
    assert all(rows(section(PAGE, f"## {name}")) for name in QUEUES)


@pytest.mark.django_db
def test_rows_of_celery_beat_become_schedules(broker, monkeypatch, capsys):
    def row(name, **moments):
        one = {"task": note.name, "queue": None, "enabled": True, "args": '["x"]', "kwargs": "{}"}
        return SimpleNamespace(**{**one, "one_off": False, "interval": None, "crontab": None}, name=name, **moments)

    at_five = dict(
        minute="0", hour="5, 17", day_of_month="*", month_of_year="*", day_of_week="1", timezone="Asia/Tokyo"
    )
    rows = [row("often"), row("daily"), row("odd"), row("dusk")]
    rows[0].interval = SimpleNamespace(every=5, period="minutes")
    rows[1].crontab = SimpleNamespace(**at_five)
    rows[2].crontab = SimpleNamespace(**{**at_five, "day_of_month": "1"})
    models = ModuleType("django_celery_beat.models")
    models.PeriodicTask = SimpleNamespace(objects=SimpleNamespace(exclude=lambda **names: rows))
    monkeypatch.setitem(sys.modules, "django_celery_beat", ModuleType("django_celery_beat"))
    monkeypatch.setitem(sys.modules, "django_celery_beat.models", models)

    exec(dict(blocks(PAGE))["import_beat.py"], {})

    daily, often = Schedule.objects.order_by("name")
    assert (often.every, often.args) == (300, ["x"])
    assert (daily.cron, daily.tz) == ("0 5,17 * * 1", "Asia/Tokyo")
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["odd", "dusk"]
