"""What can be done with subjects and jobs: one row for each action, with its words; and acting on many jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from django_rtq.console import permissions
from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.formatting import STATE_LABELS, Grouped, format_number
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.console.merging import merge
from django_rtq.console.nouns import OneJob, Place
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import WAITING, Selection
from django_rtq.console.reading.sweep import Count, Result, Sweep, run_steps
from django_rtq.core.broker.task_backends import shard_numbers
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks.registry import is_internal, known_task
from django_rtq.core.tasks.task import on_backend
from django_rtq.databases.exactly_once import has_committed
from django_rtq.exceptions import (
    BrokerError,
    LeaseNotExpired,
    QueueFull,
    TooManyPausedTasks,
    WorkerNotFound,
    WrongState,
)
from django_rtq.scale.placement import pinned_in
from django_rtq.workflows.handle import Workflow

# -- with jobs

_GONE = _("They will never run, and their arguments are deleted. This cannot be undone.")
#: By the verb of ACTIONS; "stop" is `cancel` for jobs that run, "terminate" the same, and kills their processes.
JOBS: dict[str, Verb] = {
    "requeue": Verb(
        name="requeue",
        label=_("Requeue"),
        permission=permissions.REQUEUE,
        question=ngettext_lazy("Requeue %(count)s dead letter?", "Requeue %(count)s dead letters?", "count"),
        consequence=_("Requeued jobs get all their attempts again."),
        done=ngettext_lazy("%(count)s dead letter was requeued.", "%(count)s dead letters were requeued.", "count"),
        is_harmless=True,
    ),
    "run_now": Verb(
        name="run_now",
        label=_("Run now"),
        permission=permissions.REQUEUE,
        question=ngettext_lazy("Queue %(count)s %(state)s job now?", "Queue %(count)s %(state)s jobs now?", "count"),
        done=ngettext_lazy("%(count)s job is queued now.", "%(count)s jobs are queued now.", "count"),
        is_harmless=True,
    ),
    "cancel": Verb(
        name="cancel",
        label=_("Cancel jobs"),
        permission=permissions.CANCEL,
        question=ngettext_lazy("Cancel %(count)s %(state)s job?", "Cancel %(count)s %(state)s jobs?", "count"),
        consequence=_GONE,
        done=ngettext_lazy("%(count)s job was cancelled.", "%(count)s jobs were cancelled.", "count"),
    ),
    "discard": Verb(
        name="discard",
        label=_("Discard"),
        permission=permissions.DISCARD,
        question=ngettext_lazy("Discard %(count)s dead letter?", "Discard %(count)s dead letters?", "count"),
        consequence=_("Their arguments and failures are deleted. This cannot be undone."),
        done=ngettext_lazy("%(count)s dead letter was discarded.", "%(count)s dead letters were discarded.", "count"),
    ),
    "purge": Verb(
        name="purge",
        label=_("Purge"),
        permission=permissions.PURGE,
        question=ngettext_lazy("Purge %(count)s waiting job?", "Purge %(count)s waiting jobs?", "count"),
        consequence=format_lazy(
            "{} {}",
            _("This includes scheduled jobs and jobs waiting for a retry. Running jobs and dead letters are kept."),
            _GONE,
        ),
        done=ngettext_lazy("%(count)s job was purged.", "%(count)s jobs were purged.", "count"),
    ),
    "erase": Verb(
        name="erase",
        label=_("Erase"),
        permission=permissions.PURGE,
        question=ngettext_lazy(
            "This deletes all that is kept: %(count)s job.", "This deletes all that is kept: %(count)s jobs.", "count"
        ),
        consequence=_(
            "Waiting jobs, dead letters, outcomes, logs, steps and workflows are deleted. This cannot be undone. "
            "Running jobs go on: erase again when they have finished. Limits stay."
        ),
        done=ngettext_lazy("%(count)s job was erased.", "%(count)s jobs were erased.", "count"),
        nothing=_("Nothing was done: nothing is kept of the client."),
    ),
}
JOBS["stop"] = replace(
    JOBS["cancel"],
    consequence=_("When they stop, they are cancelled and never run again, even if their work is incomplete."),
    done=ngettext_lazy("%(count)s job was asked to stop.", "%(count)s jobs were asked to stop.", "count"),
)
JOBS["terminate"] = replace(
    JOBS["cancel"],
    name="terminate",
    label=_("Terminate"),
    question=_("This kills the process that runs the job."),
    consequence=_(
        "The job is cancelled and never runs again, even if its work is incomplete. Other jobs in that process "
        "go back to their queue and start over, but those with max_crashes=0 become dead letters. If the job "
        "reacts to being asked to stop, do that instead."
    ),
    done=ngettext_lazy(
        "%(count)s job was asked to stop. If it does not, its process is killed.",
        "%(count)s jobs were asked to stop. The processes of those that do not stop are killed.",
        "count",
    ),
)
#: Those that have an address.
ROUTED = {name: verb for name, verb in JOBS.items() if name != "stop"}


def _is_dead(job: JobDetails) -> bool:
    return job.state is JobState.DEAD


def _may_run_again(job: JobDetails) -> bool:
    is_over = job.state.is_final and not _is_dead(job)
    return is_over and job.has_call and known_task(job.task) is not None and not is_internal(job.task)


def _of_one(verb: str, applies: Callable[[JobDetails], bool], **words: Any) -> Verb:
    """A verb of one job: what is done with many, or asked before, with this one selected."""

    def page(job: JobDetails, url: Callable[..., str], here: str) -> str:
        query = {"q": f"queue:{job.queue} state:{job.state}", "id": job.id, "next": here}
        return url(f"job_bulk_{verb}", query=query)

    return replace(JOBS[verb], applies=applies, page=page, **words)


def _requeue_changed(place: Place, target: Target) -> None:
    task = known_task(target.row.task)
    if task and has_committed(task.exactly_once, target.name):
        raise ValueError(
            gettext(
                "An earlier run of this job has committed, so its function is not called again, and other "
                "arguments would not be used. Requeue it as it is: it succeeds at once. To run the function "
                "with other arguments, enqueue a new job."
            )
        )
    OneJob(place, target.name, target.queue).requeue_changed(**target.value)


_REFUSED = {WrongState: _("Nothing was done: %(error)s")}
#: With one job. Texts name %(id)s.
OF_JOB: Sequence[Verb] = (
    _of_one("requeue", _is_dead, question=""),
    _of_one("requeue", _is_dead, label=_("Requeue in another queue")),
    Verb(
        name="edit", label=_("Requeue with other arguments"), permission=permissions.EDIT,
        do=_requeue_changed,
        log=_("Requeued with changed arguments."),
        done=_("Job %(id)s was requeued with the new arguments."),
        refused=_REFUSED,
        applies=lambda job: _is_dead(job) and not is_internal(job.task), is_harmless=True,
        question=_("Job %(id)s is requeued with these arguments, and its attempts are counted anew."),
        consequence=_("Asterisks hide secret values. Leave them as they are to keep the values."),
    ),
    _of_one("discard", _is_dead),
    Verb(
        name="send", label=_("Send an event"), permission=permissions.EDIT, is_harmless=True,
        do=lambda place, target: OneJob(place, target.name, target.queue).send(**target.value),
        log=_("Sent event %(event)s."),
        done=_("Job %(id)s has got the event."),
        refused=_REFUSED,
        applies=lambda job: bool(job.event),
        question=_("Job %(id)s waits for event %(event)s."),
        consequence=_("It gets this value, and goes on at once."),
    ),
    _of_one("run_now", lambda job: job.state in WAITING and bool(job.due_at), question=""),
    Verb(
        name="again", label=_("Enqueue again"), permission=permissions.ENQUEUE, applies=_may_run_again,
        is_harmless=True, question=_("Enqueue again"),
        page=lambda job, url, here: url(
            "registeredtask_enqueue", job.task, query={"job": job.id, "queue": job.queue}
        ),
    ),
    _of_one(
        "cancel",
        lambda job: job.state in WAITING or (job.state is JobState.RUNNING and not job.is_stopping),
        label=_("Cancel job"),
    ),
    _of_one("terminate", lambda job: job.state is JobState.RUNNING),
)  # fmt: skip
_MOVED = ngettext_lazy(
    "%(count)s dead letter was requeued in queue %(queue)s.",
    "%(count)s dead letters were requeued in queue %(queue)s.",
    "count",
)


def of_all_jobs(
    verb: str,
    label: Any,
    select: Callable[[Any], Selection],
    applies: Callable[[Any], bool] = lambda row: True,
) -> Verb:
    """A verb of a subject, about all its jobs: its button leads to the page that asks about this selection."""

    def page(row: Any, url: Callable[..., str], here: str) -> str:
        return url(f"job_bulk_{verb}", query={"q": str(select(row))})

    return replace(JOBS[verb], label=label, page=page, applies=applies)


# -- with one row of another subject

CANCELLED_AT_ONCE = 2_000  # jobs of a workflow; heartbeats cancel the others


def _wake_all(place: Place) -> None:
    for name in {worker.supervisor_name: worker.name for worker in place.workers}.values():
        with suppress(WorkerNotFound):  # one that has exited since
            place.workers[name].wake()


_UNKNOWN = {WorkerNotFound: _("Nothing was done: worker %(name)s is unknown. It has exited or has only just started.")}


def _forget(place: Place, target: Target) -> str | bool:
    answer = place.queues[target.name].forget(**(target.value or {}))
    return {"forgotten": True, "missing": False}.get(answer, answer)


def _limit(change: Callable[..., None], limits: Mapping[str, Any]) -> str:
    """Change them. Returns which were changed."""
    if limits:
        change(**limits)
    return ", ".join(f"{name}={value}" for name, value in limits.items())


_LIMITS = Verb(
    name="limits",
    label=_("Limits"),
    permission=permissions.LIMIT,
    done=_("Limits in queue %(queue)s changed: %(answer)s"),
    nothing=_("Nothing was changed."),
    question=_(
        "A change holds for all workers from their next claim on, is stored in Redis and survives restarts. Running "
        "jobs continue."
    ),
    is_harmless=True,
)


def _of_client(client: Any) -> Selection:
    return Selection(client=client.client)


def _of_task(task: Any) -> Selection:
    return Selection(task=f"={task.task}")


ACTIONS = {
    "pause_queue": Verb(
        name="pause",
        label=_("Pause queue"),
        permission=permissions.PAUSE,
        do=lambda place, target: place.queues[target.name].pause(by=target.by),
        done=_("Queue %(name)s is paused. Running jobs continue, and no new jobs start."),
        log=_("Paused."),
        nothing=_("Queue %(name)s was already paused."),
        applies=lambda queue: not queue.details.paused,
    ),
    "resume_queue": Verb(
        name="resume",
        label=_("Resume queue"),
        permission=permissions.PAUSE,
        do=lambda place, target: place.queues[target.name].resume(),
        done=_("Queue %(name)s was resumed."),
        log=_("Resumed."),
        nothing=_("Queue %(name)s is not paused."),
        applies=lambda queue: queue.details.paused,
    ),
    "pause_task": Verb(
        name="pause",
        label=_("Pause"),
        permission=permissions.PAUSE_TASK,
        do=lambda place, target: place.tasks[target.name].pause(target.queue, by=target.by),
        done=_("Task %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start."),
        log=_("Paused in %(queues)s."),
        nothing=_("Task %(name)s was already paused."),
        refused={TooManyPausedTasks: "%(error)s"},
        applies=lambda task: not (task.is_internal or task.paused_in),
    ),
    "resume_task": Verb(
        name="resume",
        label=_("Resume"),
        permission=permissions.PAUSE_TASK,
        do=lambda place, target: place.tasks[target.name].resume(target.queue),
        done=_("Task %(name)s was resumed in %(queues)s."),
        log=_("Resumed in %(queues)s."),
        nothing=_("Task %(name)s is not paused."),
        applies=lambda task: bool(task.paused_in) and not task.is_internal,
    ),
    "pause_client": Verb(
        name="pause",
        label=_("Pause"),
        permission=permissions.PAUSE_CLIENT,
        do=lambda place, target: place.clients[target.name].pause(target.queue, by=target.by),
        done=_("Client %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start."),
        log=_("Paused in %(queues)s."),
        nothing=_("Client %(name)s was already paused."),
        applies=lambda in_queue: in_queue.pause is None,
    ),
    "resume_client": Verb(
        name="resume",
        label=_("Resume"),
        permission=permissions.PAUSE_CLIENT,
        do=lambda place, target: place.clients[target.name].resume(target.queue),
        done=_("Client %(name)s was resumed in %(queues)s."),
        log=_("Resumed in %(queues)s."),
        nothing=_("Client %(name)s is not paused."),
        applies=lambda in_queue: in_queue.pause is not None,
    ),
    "quiet_worker": Verb(
        name="quiet",
        label=_("Quiet"),
        permission=permissions.CONTROL,
        do=lambda place, target: place.workers[target.name].quiet(by=target.by),
        done=_("The rtq_worker of %(name)s was asked to go quiet: running jobs continue, and no new jobs start."),
        log=_("Asked to go quiet."),
        refused=_UNKNOWN,
        applies=lambda worker: not (worker.is_lost or worker.is_quiet),
    ),
    "wake_worker": Verb(
        name="wake",
        label=_("Wake"),
        permission=permissions.CONTROL,
        do=lambda place, target: place.workers[target.name].wake(),
        done=_("The rtq_worker of %(name)s was asked to start new jobs again."),
        log=_("Asked to start new jobs again."),
        refused=_UNKNOWN,
        applies=lambda worker: worker.is_quiet and not worker.is_lost,
    ),
    "wake_workers": Verb(
        name="wake_all",
        label=_("Wake all"),
        permission=permissions.CONTROL,
        do=lambda place, target: _wake_all(place),
        done=_("All workers were asked to start new jobs again."),
        log=_("Asked to start new jobs again."),
        applies=lambda workers: any(worker.is_quiet and not worker.is_lost for worker in workers),
        page=lambda workers, url, here: url("worker_wake_all"),
    ),
    "purge_queue": of_all_jobs(
        "purge",
        _("Purge"),
        lambda queue: Selection(queues=[queue.name]),
        lambda queue: queue.details.waiting > 0,
    ),
    "cancel_client": of_all_jobs(
        "cancel",
        _("Cancel its jobs"),
        _of_client,
        lambda client: any(each.queued or each.scheduled for each in client.in_queues),
    ),
    "requeue_client": of_all_jobs("requeue", _("Requeue its dead letters"), _of_client),
    "erase_client": of_all_jobs("erase", _("Erase"), _of_client, lambda client: client.client),
    "cancel_task": of_all_jobs(
        "cancel",
        _("Cancel its jobs"),
        _of_task,
        lambda task: any(queue.waiting or queue.is_cut for queue in task.details.queues),
    ),
    "requeue_task": of_all_jobs(
        "requeue",
        _("Requeue its dead letters"),
        _of_task,
        lambda task: any(queue.dead or "dead" in queue.cut for queue in task.details.queues),
    ),
    "requeue_workflow": of_all_jobs(
        "requeue",
        _("Requeue dead jobs"),
        lambda progress: Selection(workflow=progress.id),
        lambda progress: not progress.state.is_final and any(step.dead for step in progress.steps),
    ),
    "cancel_workflow": Verb(
        name="cancel",
        label=_("Cancel workflow"),
        permission=permissions.CANCEL,
        do=lambda place, target: Workflow(target.name, backend=place.readers.place).cancel(most_jobs=CANCELLED_AT_ONCE),
        done=_("Workflow %(name)s is cancelled. Running jobs were asked to stop."),
        log=_("Cancelled workflow %(name)s."),
        nothing=_("Nothing was done: the workflow is over."),
        applies=lambda progress: not progress.state.is_final,
        question=_("This cancels workflow %(name)s."),
        consequence=_("No step starts any more. Waiting jobs are cancelled, running ones are asked to stop."),
    ),
    "requeue_group": of_all_jobs("requeue", _("Requeue"), attrgetter("wanted"), attrgetter("is_known")),
    "discard_group": of_all_jobs("discard", _("Discard"), attrgetter("wanted"), attrgetter("is_known")),
    "limit_client": replace(
        _LIMITS,
        do=lambda place, target: _limit(partial(place.clients[target.name].limit, target.queue), target.value),
        title=_("Limits of client %(name)s in queue %(queue)s"),
    ),
    "limit_queue": replace(
        _LIMITS,
        do=lambda place, target: _limit(place.queues[target.name].limit, target.value),
        title=_("Limits of queue %(queue)s"),
    ),
    "limit_clients": replace(
        _LIMITS,
        name="limit_clients",
        label=_("Limits of each client"),
        do=lambda place, target: _limit(place.queues[target.name].limit_clients, target.value),
        title=_("Limits of each client in queue %(queue)s"),
    ),
    "forget_queue": Verb(
        name="forget",
        label=_("Forget"),
        permission=permissions.PURGE,
        do=_forget,
        done=_("Queue %(name)s was forgotten."),
        log=_("Forgotten."),
        nothing=_("Queue %(name)s is in no list: nothing was changed."),
        refused={
            "jobs": _("Queue %(name)s stays: it has jobs or dead letters."),
            "paused": _("Queue %(name)s stays: it is paused. Resume it first."),
            "limits": _("Queue %(name)s stays: it has limits, or clients that are paused."),
            "workers": _("Queue %(name)s stays: a worker serves it."),
            "recent": _("Queue %(name)s stays: its last jobs finished a few minutes ago. Try again in two minutes."),
            "outcomes": _("Queue %(name)s stays: it keeps outcomes of finished jobs."),
        },
        applies=lambda queue: queue.is_empty,
        question=_("This removes queue %(name)s from all lists. A queue with jobs, dead letters or workers stays."),
        consequence=_("A queue that is used again comes back."),
        is_typed=True,
    ),
    "stop_worker": Verb(
        name="stop",
        label=_("Stop"),
        permission=permissions.CONTROL,
        do=lambda place, target: place.workers[target.name].stop(),
        done=_("The rtq_worker of %(name)s was asked to stop. It exits when its running jobs have finished."),
        log=_("Asked to stop."),
        refused=_UNKNOWN,
        applies=lambda worker: not worker.is_lost,
        question=_("This stops the rtq_worker of %(name)s and all its processes."),
        consequence=_(
            "It starts no new jobs, finishes its running jobs, releases those that take too long, and exits. You "
            "cannot start it again from here: use the service manager of its machine."
        ),
    ),
    "reclaim_worker": Verb(
        name="reclaim",
        label=_("Reclaim its jobs"),
        permission=permissions.REQUEUE,
        do=lambda place, target: len(place.workers[target.name].reclaim()),
        done=ngettext_lazy(
            "%(count)d job of worker %(name)s was reclaimed.",
            "%(count)d jobs of worker %(name)s were reclaimed.",
            "count",
        ),
        refused={
            LeaseNotExpired: _(
                "Nothing was done: the lease of worker %(name)s has not expired, so it may still be running."
            )
        },
        applies=lambda worker: worker.is_lost,
    ),
}


def everywhere(noun: str, applies: Callable[[Any], bool], is_paused: Callable[[Any], bool]) -> tuple[Verb, Verb]:
    """Pause and resume for all queues together."""
    on, off = ACTIONS[f"pause_{noun}"], ACTIONS[f"resume_{noun}"]
    return (
        replace(on, label=_("Pause in all queues"), applies=lambda row: applies(row) and not is_paused(row)),
        replace(off, label=_("Resume in all queues"), applies=lambda row: applies(row) and is_paused(row)),
    )


# -- words


def words_of(sweep: Sweep) -> Verb:
    """The row of what is done."""
    of_running = "terminate" if sweep.terminates else "stop"
    return JOBS[of_running if list(sweep.states) == ["running"] else sweep.verb]


def question(sweep: Sweep, count: Count) -> str:
    """The question before something is done with so many jobs. If not all were looked at, there may be more."""
    states = gettext("waiting")
    if len(sweep.states) == 1 or not set(sweep.states) <= set(WAITING):
        states = ", ".join(str(STATE_LABELS[JobState(state)]) for state in sweep.states if state != "finished")
    text: str = words_of(sweep).question % {"count": Grouped(count.count), "state": states}
    if count.is_complete:
        return text
    more = gettext("There may be more: %(searched)s of %(total)s jobs were looked at.")
    return f"{text} {more % {'searched': format_number(count.searched), 'total': format_number(count.total)}}"


def done_text(sweep: Sweep, result: Result) -> str:
    """What was done."""
    asked = sum(answer.startswith("asked") for answer in result.answers.values())
    texts = []
    if result.count > asked or not asked:
        done = _MOVED if sweep.target else JOBS[sweep.verb].done
        texts.append(done % {"count": Grouped(result.count - asked), "queue": sweep.target})
    if asked:
        texts.append(JOBS["terminate" if sweep.terminates else "stop"].done % {"count": Grouped(asked)})
    if result.workflows:
        deleted = ngettext("%(count)d workflow was deleted.", "%(count)d workflows were deleted.", result.workflows)
        texts.append(deleted % {"count": result.workflows})
    return " ".join(texts)


def refused_text(count: int) -> str:
    """The warning if nothing was done with some of the jobs."""
    return ngettext(
        "Nothing was done with %(count)d of them: someone else may have acted first, or it may not run now.",
        "Nothing was done with %(count)d of them: someone else may have acted first, or they may not run now.",
        count,
    ) % {"count": count}


def nothing_text(sweep: Sweep) -> str:
    """That no job matches any more."""
    text = words_of(sweep).nothing or gettext(
        "Nothing was done: no job matches any more. Someone else may have acted first."
    )
    return str(text)


def waiting_texts(readers: Readers, queue: str) -> Iterator[str]:
    """Why jobs that have come to a queue have to wait there."""
    if readers.queues.get(queue).paused:
        yield gettext("Queue %(name)s is paused: the jobs wait until it is resumed.") % {"name": queue}
    if not readers.workers([queue]):
        text = gettext("No worker serves queue %(name)s now: the jobs wait. Start one: %(command)s")
        yield text % {"name": queue, "command": f"python manage.py rtq_worker --queues {queue}"}


# -- acting


def act(place: Place, sweep: Sweep, *, seconds: float, limit: int) -> Result:
    """Act for as long as there is time, in each shard; what is left becomes a job of each queue.

    A purge leaves nothing to a job, which would wait there, too.
    """
    ends = time.monotonic() + seconds
    return merge(place.readers.in_each_shard(lambda each: _act_here(each, sweep, ends, limit)))


def _act_here(readers: Readers, sweep: Sweep, ends: float, limit: int) -> Result:
    """In one shard, until that moment; one step at least."""
    if sweep.selection.ids and shard_numbers():
        sweep = sweep.part_in(readers.place)
        if not sweep.selection.ids:
            return Result()
    left = max(0.0, ends - time.monotonic())
    result = run_steps(readers.sweeps.steps(sweep, limit=limit), seconds=left)
    if sweep.selection.ids:
        result = replace(result, refused=len(sweep.selection.ids) - result.count)
    if result.stopped_by or sweep.verb == "purge":
        return result
    rest: list[JobHandle[Any]] = []
    try:
        for queue in result.queues_left:
            action = on_backend(run_bulk_action.using(queue_name=queue), pinned_in(readers.place))
            rest.append(action.delay(sweep.of(queue).stored()))
    except (BrokerError, QueueFull) as error:
        return replace(result, rest=rest, stopped_by=error)
    return replace(result, rest=rest)
