"""All sheets: each column is on the page, on the terminal and in JSON."""

import importlib
import pkgutil
from dataclasses import replace

import pytest

from django_rtq.console import subjects
from django_rtq.console.reading.clients import ClientInQueue, QueueState
from django_rtq.console.reading.details import NO_HOLDS, Holds, RunningJob, TaskPause, WorkerDetails
from django_rtq.console.reading.jobs.dead_letters import DeadGroup
from django_rtq.console.reading.memory import KINDS, QueueMemory
from django_rtq.console.reading.metrics.reader import TaskMetrics, VersionRuns
from django_rtq.console.reading.task_details import TaskDetails, TaskInQueue
from django_rtq.console.render.html import Viewer, buttons, tables
from django_rtq.console.render.sheet import Sheet
from django_rtq.console.render.terminal import columns, table
from django_rtq.console.schedule_status import ScheduleStatus
from django_rtq.console.subjects.clients import CLIENTS, OF_CLIENT, ClientRow
from django_rtq.console.subjects.queues import Queue
from django_rtq.console.subjects.tasks import OF_TASK, TASKS, InQueue, TaskRow, WholeTask
from django_rtq.console.subjects.workflows import STEPS
from django_rtq.core.jobs.details import JobDetails, Progress
from django_rtq.core.jobs.job import JobState, new_job_id
from django_rtq.core.scheduler.registry import ScheduledTask
from django_rtq.core.schedules import every
from django_rtq.databases.outbox import OutboxRow
from django_rtq.limits.limit_kinds import Limit
from django_rtq.workflows.handle import StepProgress, WorkflowProgress, WorkflowState
from tests.app.tasks import note
from tests.console.incidents.overviews import NOW, row

_PAUSE = TaskPause(task="shop.tasks.charge", seconds=60.0, by="eve", held=2)
_QUEUE = row(
    name="mail",
    queued=1,
    oldest_seconds=5.0,
    scheduled=1,
    retrying=1,
    running=1,
    dead=1,
    paused=True,
    paused_by="eve",
    counts={"run_ms": [5000] * 60},
)
#: A row of each sheet that has something in each column.
ROWS = {
    "Queues": Queue(_QUEUE.details, _QUEUE, workers=1),
    "Schedules": ScheduleStatus(
        name="beat", task="shop.tasks.beat", queue="mail", source="code", enabled=False, problem="Switched off.",
        entry=ScheduledTask(task=None, schedule=every(minutes=1, missed="skip", overlap="skip"), enabled=False),
        last_slot=NOW, next_slot=NOW, last_job="job-1", last_state="dead", has_begun=True,
    ),
    "Tasks": TaskRow(
        task="shop.tasks.charge", metrics=TaskMetrics(done=9, failed=2, crashed=1), pauses=[("mail", _PAUSE)],
        code=note,
    ),
    "Memory": QueueMemory(name="mail", sizes=dict.fromkeys(KINDS, 1000)),
    "Outbox": OutboxRow(
        job_id=new_job_id(), backend="", queue="mail", task="shop.tasks.charge", attempts=2, due_at=NOW,
        error="Queue mail is full.",
    ),
    "Versions": VersionRuns(version="v44", since=NOW, metrics=TaskMetrics(done=9, failed=1, runs={12: 10})),
    "Workers": WorkerDetails(
        name="web1:7", host="web1", pid=7, queues=["mail"], running=[], last_seen_seconds=1, last_claim_seconds=1,
        jobs_done=3, supervisor_name="web1:1", version="0.9", project_version="v44", other_limits=["mail"],
        memory_bytes=10**6, up_seconds=60, is_quiet=True, shard=2,
    ),
}  # fmt: skip
ROWS["Workflows"] = WorkflowProgress(
    id="0f3a9c1be27d", name="month-end", client="bakery", key="", state=WorkflowState("blocked"),
    made_ms=0, ended_ms=None,
    steps=(
        StepProgress(number=0, task="shop.tasks.bake", queue="mail", state="started", size=2, done=1, dead=1, gone=0),
        StepProgress(
            number=1, task="shop.tasks.sell", queue="mail", state="waiting", size=9, done=5, dead=3, gone=1, after=(0,)
        ),
    ),
    fields={},
)  # fmt: skip
ROWS["Steps"] = STEPS.of(ROWS["Workflows"])[1]
_CLIENT = ClientInQueue(
    client="bakery", queue="mail", queued=1, oldest_seconds=5.0, scheduled=1, running=1, is_blocked=False, shards=(2,),
    limits={"max_running": Limit(value=1, is_from_settings=False)}, pause=None, holds=Holds(at_limit=1), runs=1.0,
    busy_seconds=1.0, fair_runs=1.0,
    queue_state=QueueState(limits={}, default={}, running=1, holds=NO_HOLDS, runs=2.0, busy_seconds=2.0),
)  # fmt: skip
ROWS["Clients"], ROWS["InQueues"], ROWS["OfQueue"] = replace(_CLIENT, in_queues=[_CLIENT]), _CLIENT, _CLIENT
ROWS["DeadLetterGroups"] = DeadGroup(
    queue="mail", task="shop.tasks.charge", error_class="builtins.OSError", count=3, first_at=NOW, last_at=NOW,
    newest_id="job-1", message="No route", shards=(2,),
)  # fmt: skip
ROWS["QueuesOfTask"] = InQueue(
    task="shop.tasks.charge", name="mail", pauses=[("mail", _PAUSE)],
    found=TaskInQueue(queue=_QUEUE.details, queued=1, scheduled=1, retrying=1, running=1, dead=1),
)  # fmt: skip
_TASK = WholeTask(
    task="shop.tasks.charge", metrics=ROWS["Tasks"].metrics, pauses=ROWS["Tasks"].pauses, code=note,
    details=TaskDetails(
        begins_at=NOW, hours=[], total=ROWS["Tasks"].metrics,
        queues=[ROWS["QueuesOfTask"].found], deploys=[], versions=[], groups=[],
    ),
)  # fmt: skip
ROWS["Jobs"] = JobDetails(
    id="job-1", queue="mail", state=JobState("running"), task=note.name, client="bakery", args=[1],
    worker="web1:7", claimed_at=NOW, progress=Progress(done=1, total=2, text="half", at=None),
    errors=[{"error_class": "builtins.OSError", "error": "No route"}],
)  # fmt: skip
ROWS["Running"] = RunningJob(
    id="job-1", queue="mail", task=note.name, seconds=5000.0, worker="web1:7", lease_left_seconds=-1.0,
    progress=ROWS["Jobs"].progress,
)  # fmt: skip
#: Rows with what the others cannot have at the same time.
MORE_ROWS = {"Tasks": [TaskRow(task="nobody.knows")]}


def _sheets():
    for module in pkgutil.iter_modules(subjects.__path__, f"{subjects.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Sheet):
                yield value


SHEETS = {type(sheet).__name__: sheet for sheet in _sheets()}


def url(name, *args, query=None):
    return "/".join(["", name, *args])


@pytest.mark.parametrize("sheet", SHEETS.values(), ids=list(SHEETS))
def test_each_column_is_in_all_renderings(sheet):
    item, viewer = ROWS[type(sheet).__name__], Viewer(url=url, may=lambda permission: True, sees_all_shards=True)
    items = [item, *MORE_ROWS.get(type(sheet).__name__, ())]
    (shown,) = tables(sheet, items, viewer)
    heading = table(columns(sheet, items), items)[0]
    said = sheet.as_dict(item)

    titles = [str(head["title"]) for head in shown["heads"]]
    for column in sheet.columns:
        title = str(column.title)
        is_shown_small = column.under and (f">{title}: " in shown["rows"] or not title or column.kind.is_state)
        assert title in titles or is_shown_small or column.name == sheet.section, column.name
        assert column.is_of_shards or ((title or column.name).upper() in heading and column.name in said), column.name


@pytest.mark.parametrize(
    ("sheet", "item", "actions"),
    [
        *((sheet, ROWS[name], sheet.actions) for name, sheet in SHEETS.items()),
        (CLIENTS, ClientRow("bakery", [_CLIENT]), OF_CLIENT),
        (TASKS, _TASK, OF_TASK),
    ],
    ids=[*SHEETS, "one_client", "one_task"],
)
def test_each_action_of_a_row_is_offered_to_those_who_may(sheet, item, actions):
    offered = {verb.label: verb for verb in actions if verb.applies(item)}

    def html(may):
        viewer = Viewer(url=url, may=may)
        rows = [table["rows"] for table in tables(sheet, [item], viewer)] if actions is sheet.actions else []
        return "".join([*rows, buttons(sheet, item, viewer, actions)])

    assert all(str(label) in html(lambda permission: True) for label in offered)
    assert not any(f"_{verb.name}/" in html(lambda permission: False) for verb in offered.values())
