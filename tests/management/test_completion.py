"""Completion in the shell: what manage.py answers when a shell asks it, as argcomplete does."""

import os
import subprocess
import sys

import pytest
from django.test import override_settings

from django_rtq.internal_tasks import run_bulk_action
from django_rtq.management import completion
from django_rtq.tasks import registry
from tests.management.commands import body
from tests.markdown import ROOT
from tests.support.jobs import queued_job, scheduled_job
from tests.support.redis_server import UNREACHABLE

argcomplete = pytest.importorskip("argcomplete")


@pytest.fixture
def complete(monkeypatch):
    """The words that can follow a line."""

    def words(line):
        monkeypatch.setenv("_ARGCOMPLETE", "1")
        monkeypatch.setenv("_ARGCOMPLETE_IFS", "\v")
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        finder = argcomplete.CompletionFinder(completion._parser(line.split()), always_complete_options=False)
        prequote, prefix, _, before, _ = argcomplete.split_line(line, len(line))
        return [word.strip() for word in finder._get_completions(before, prefix, prequote, None)]

    return words


def test_commands_and_options_are_completed_those_of_django_too(complete):
    assert complete("manage.py rtq_workf") == ["rtq_workflows"]
    assert complete("manage.py makemig") == ["makemigrations"]
    assert complete("manage.py migrate --datab") == ["--database"]
    assert {"list", "show", "requeue"} <= set(complete("manage.py rtq_jobs "))
    assert complete("manage.py rtq_worker --proc") == ["--processes"]


def test_queues_are_completed(complete, redis, broker):
    queued_job(broker)
    assert "default" in complete("manage.py rtq_jobs requeue --queue ")
    assert complete("manage.py rtq_queues pause def") == ["default"]
    behind = complete("manage.py rtq_worker --queues default,")
    assert behind
    assert all(name.startswith("default,") for name in behind)
    assert "default,default" not in behind
    assert "default" in complete("manage.py rtq_jobs move --to ")


def test_tasks_are_completed_without_internal_ones(complete):
    assert run_bulk_action.name in registry.all_tasks()
    assert "tests.app.tasks.note" in complete("manage.py rtq_jobs list --task tests.app.tasks.n")
    assert run_bulk_action.name not in complete("manage.py rtq_tasks pause default ")


def test_ids_are_those_of_jobs_that_the_action_is_for(complete, redis, broker):
    waits = queued_job(broker, body=body("shop.tasks.send_mail")).id
    later = scheduled_job(broker).id
    assert set(complete("manage.py rtq_jobs show ")) == {waits, later}
    assert complete(f"manage.py rtq_jobs show {waits} {later[:-1]}") == [later]
    assert complete("manage.py rtq_jobs run ") == [later]
    assert complete("manage.py rtq_jobs requeue ") == []
    assert complete("manage.py rtq_jobs show --queue other ") == []
    assert waits not in complete("manage.py rtq_workflows show ")


def test_without_redis_there_are_no_ids(complete):
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        assert complete("manage.py rtq_jobs show ") == []


PROGRAM = """
import sys
sys.argv = {argv}
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""


@pytest.mark.parametrize(("argv", "answer"), [(["manage.py"], "rtq_workflows"), (["other.py"], None)])
def test_manage_py_answers_and_no_other_program(tmp_path, argv, answer):
    line, found = "./manage.py rtq_workfl", tmp_path / "found"
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "DJANGO_SETTINGS_MODULE": "testproject.settings",
    }
    program = [sys.executable, "-c", PROGRAM.format(argv=argv)]
    done = subprocess.run(
        program, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (found.read_text().strip() if found.exists() else None) == answer


def test_without_argcomplete_nothing_happens(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["manage.py"])
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert completion.answer() is None
