"""rtq_tasks: pauses and resumes tasks."""

import getpass
import json

import pytest

from tests.support.commands import run
from tests.support.jobs import claim, queued_job

TASK = "tests.app.tasks.note"


def waiting(broker, *names):
    return [queued_job(broker, name, body=json.dumps({"task": TASK}, separators=(",", ":"))) for name in names]


def test_a_task_waits_until_it_is_resumed(broker):
    broker.register_queues(["default", "mail"])
    jobs = waiting(broker, "a", "b")

    paused = run("rtq_tasks", "pause", "*", TASK)
    assert claim(broker, 5) == []
    listed = run("rtq_tasks", "list", "--no-color")
    resumed = run("rtq_tasks", "resume", "*", TASK)

    assert (paused.code, paused.out) == (
        0,
        f"Task {TASK} is paused in default, mail. Its running jobs continue, and no new jobs start.\n",
    )
    heading, first, *others = listed.out.splitlines()
    assert heading.split()[:4] == ["TASK", "QUEUE", "DONE", "FAILED"]
    assert first.split()[:11] == [TASK, "default", "0", "0", "0", *["-"] * 5, "2"]
    assert first.count(f": paused by {getpass.getuser()}, ") == 2
    assert not any("paused" in line for line in others)
    assert resumed.out == f"Task {TASK} was resumed in default, mail.\n"
    assert claim(broker, 5) == [job.id for job in jobs]
    assert "paused by" not in run("rtq_tasks", "list").out


def test_json(broker):
    waiting(broker, "a")

    assert run("rtq_tasks", "pause", "default", TASK, "--json").json == {"paused": {TASK: ["default"]}}
    assert run("rtq_tasks", "pause", "default", TASK, "--json").json == {"paused": {TASK: []}}
    claim(broker)

    found, *others = json.loads(run("rtq_tasks", "list", "--json").out)
    (pause,) = found["paused"]
    assert (found["task"], found["done"], found["held"], found["run_p95"]) == (TASK, 0, 1, None)
    assert (pause["queue"], pause["held"], pause["by"]) == ("default", 1, getpass.getuser())
    assert {"tests.app.tasks.sleep"} <= {other["task"] for other in others}
    (queue,) = json.loads(run("rtq", "--json").out)["queues"]
    assert [pause["task"] for pause in queue["paused_tasks"]] == [TASK]


def test_a_typo_pauses_nothing(broker, readers):
    broker.register_queues(["default"])

    wrong = run("rtq_tasks", "pause", "default", TASK, f"{TASK}d")
    unknown = run("rtq_tasks", "pause", "defualt", TASK)

    assert wrong.code == unknown.code == 1
    assert f"Did you mean {TASK}?" in wrong.error
    assert "Did you mean 'default'?" in unknown.error
    assert readers.queues.get("default").paused_tasks == ()


def test_one_of_the_queues_has_too_many(broker, rtq):
    broker.register_queues(["default", "mail"])
    for number in range(100):
        rtq.tasks[f"task{number}"].pause("default")

    result, again = (run("rtq_tasks", "pause", "*", TASK) for _ in range(2))

    assert (result.code, again.code, again.out) == (1, 1, "")
    assert result.out.startswith(f"Task {TASK} is paused in mail. ")
    assert "In queue default, 100 tasks are paused already." in result.err


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_names_that_are_not_utf8_are_refused(broker, action):
    broker.register_queues(["default"])

    assert "is not valid UTF-8" in run("rtq_tasks", action, "default", "\udcff").error
