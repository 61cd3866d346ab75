"""--dry-run: each action that changes something says what it would do, and does nothing."""

import pytest
from django.core.management import load_command_class

from django_rtq import every, task
from django_rtq.console.commands.command import SheetCommand
from django_rtq.models import Schedule
from tests.support.commands import run
from tests.support.jobs import finished_job, new_job
from tests.support.snapshots import snapshot

TASK = f"{__name__}.report"
COMMANDS = ("rtq_queues", "rtq_clients", "rtq_tasks", "rtq_workers", "rtq_schedule")


def report(number=0):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _schedules(no_tasks):
    task(schedule=every(seconds=30, name="often"))(report)


@pytest.fixture
def used(broker, readers, rtq, transactional_db):
    """Queues, of which one is empty, one paused and one serves a worker; a paused client, a paused task, a row."""
    broker.register_queues(["empty", "paused"])
    broker.enqueue("default", [new_job(client="acme") for _ in range(3)])
    finished_job(broker, queue="served")
    rtq.queues["paused"].pause()
    rtq.clients["beta"].pause("default", by="eve")
    rtq.tasks[TASK].pause("paused")
    broker.sign_on(["served"], "web1-11")
    broker.heartbeat(["served"], {"web1-11": {"supervisor_name": "web1-10"}}, promote=False)
    Schedule(name="nightly", task=TASK, cron="0 5 * * *").save()
    broker.schedules.update({"nightly": None})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("rtq_queues pause default paused", "Would pause queue default.\nQueue paused was already paused.\n"),
        ("rtq_queues resume default paused", "Queue default is not paused.\nWould resume queue paused.\n"),
        ("rtq_queues purge default", "queue:default: Would purge 3 jobs.\n"),
        ("rtq_queues purge empty", "queue:empty: Would purge 0 jobs.\n"),
        ("rtq_queues forget empty default", "Would forget queue empty.\n"),
        ("rtq_clients pause default acme beta", "Would pause client acme in default.\n"
         "Client beta was already paused.\n"),
        ("rtq_clients resume default acme beta", "Client acme is not paused.\n"
         "Would resume client beta in default.\n"),
        ("rtq_clients purge default acme", "queue:default client:acme: Would purge 3 jobs.\n"),
        ("rtq_clients limit default --client acme --max-running 5 --rate 2/s",
         "Would set max_running 5, rate 2/s for client 'acme' of queue default.\n"),
        ("rtq_clients limit default --whole-queue --max-running settings",
         "Would set max_running settings for all clients of queue default.\n"),
        (f"rtq_tasks pause * {TASK}", f"Would pause task {TASK} in default, empty, served.\n"),
        (f"rtq_tasks pause paused {TASK}", f"Task {TASK} was already paused.\n"),
        (f"rtq_tasks resume * {TASK}", f"Would resume task {TASK} in paused.\n"),
        ("rtq_workers quiet --all", "Would quiet worker web1-11.\n"),
        ("rtq_workers wake web1-*", "Would wake worker web1-11.\n"),
        ("rtq_workers stop --queue served", "Would stop worker web1-11.\n"),
        ("rtq_schedule run often", f"Would enqueue a job of task {TASK} in queue default.\n"),
        ("rtq_schedule enable often", "often is enabled already.\n"),
        ("rtq_schedule disable often", "Would disable often.\n"),
        ("rtq_schedule sync", "Would change 1 schedule in Redis.\n"),
    ],
)  # fmt: skip
def test_nothing_is_changed(redis, used, call, said):
    before = snapshot(redis)

    ran = run(*call.split(), "--dry-run")

    assert ran.out == said
    assert snapshot(redis) == before


def test_what_would_be_refused_is_refused(used):
    assert run("rtq_queues", "forget", "default", "--dry-run").err.startswith("Queue default stays: it has jobs")
    assert run("rtq_clients", "limit", "default", "--whole-queue", "--weight", "2", "--dry-run").code == 64
    assert run("rtq_schedule", "disable", "oftn", "--dry-run").code == 1


def test_json_says_that_it_is_a_dry_run(used):
    assert run("rtq_queues", "pause", "default", "--dry-run", "--json").json == {
        "paused": ["default"],
        "changed": ["default"],
        "dry_run": True,
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_each_action_that_changes_something_has_it(name):
    command = load_command_class("django_rtq", name)

    assert isinstance(command, SheetCommand)
    assert [action for action, declared in command.actions.items() if declared.reads_only] == ["list"]
