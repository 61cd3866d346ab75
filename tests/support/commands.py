"""Runs management commands, and makes dead letters for them."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.jobs import serializer
from tests.support.jobs import QUEUE, new_job


@dataclass
class Ran:
    """What a command printed, and how it ended."""

    out: str
    err: str
    code: int = 0
    error: str = ""  # of the CommandError

    @property
    def json(self):
        return json.loads(self.out)


class Terminal(StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


def run(name, *args, out=None, err=None, **options):
    """Run a command. Its exit or CommandError is part of what comes of it. Without its app the test is skipped."""
    if name.startswith("rtq") and find_spec(f"django_rtq.management.commands.{name}") is None:
        pytest.skip(f"without {name}")
    out, err = out or StringIO(), err or StringIO()
    code, problem = 0, ""
    try:
        call_command(name, *args, stdout=out, stderr=err, **options)
    except CommandError as error:
        code, problem = error.returncode, str(error)
    except SystemExit as end:
        code = end.code
    return Ran(out.getvalue(), err.getvalue(), code, problem)


def body(task="shop.tasks.send_mail", args=(), kwargs=None):
    """The JSON part of a record."""
    return serializer.dumps({"task": task, "args": list(args), "kwargs": kwargs or {}})


def failure(error_class="shop.errors.OutOfOrder", error="it broke", attempt=1):
    """One failure, as workers write it down."""
    fields = {"at": 1_700_000_000_000, "attempt": attempt, "worker": "w", "error_class": error_class}
    return serializer.dumps({**fields, "error": error, "traceback": "Traceback (most recent call last):\n  here"})


def bury(broker, *jobs, queue=QUEUE, line=None):
    """Let these jobs die in a queue where nothing waits. Returns their ids."""
    broker.enqueue(queue, jobs)
    for_workers(broker).sign_on([queue], "buries")
    (claimed,) = for_workers(broker).claim("buries", [queue], len(jobs)).claimed
    dead = [Report("bury", job_id, text=line or failure()) for job_id in claimed.ids]
    assert for_workers(broker).settle("buries", queue, Settlement(reports=dead)) == []
    for_workers(broker).sign_off([queue], "buries")
    return [job.id for job in jobs]


def dead_letter(broker, *, queue=QUEUE, line=None, client="", **call):
    """One more dead letter. Returns its id."""
    (job_id,) = bury(broker, new_job(client=client, body=body(**call)), queue=queue, line=line)
    return job_id


def dead_letters(broker, number, **options):
    """Many dead letters of one moment. Returns their ids."""
    return bury(broker, *(new_job(body=body()) for _ in range(number)), **options)


def sit_at_terminal(monkeypatch, answer):
    """Let a person sit there who answers like this, or who presses a key if it is an exception."""

    def answer_it():
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", answer_it)
