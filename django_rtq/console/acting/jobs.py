"""What can be done with many jobs: one row for each verb, with its words; and doing it for as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

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
from django_rtq.exceptions import BrokerError, QueueFull, WrongState
from django_rtq.scale.placement import pinned_in

_GONE = gettext_lazy("They will never run, and their arguments are deleted. This cannot be undone.")
#: By the verb of ACTIONS; "stop" is `cancel` for jobs that run, "terminate" the same, and kills their processes.
JOBS: dict[str, Verb] = {
    "requeue": Verb(
        name="requeue",
        label=gettext_lazy("Requeue"),
        permission=permissions.REQUEUE,
        title=gettext_lazy("Requeue dead letters"),
        question=ngettext_lazy("Requeue %(count)s dead letter?", "Requeue %(count)s dead letters?", "count"),
        consequence=gettext_lazy("Requeued jobs get all their attempts again."),
        done=ngettext_lazy("%(count)s dead letter was requeued.", "%(count)s dead letters were requeued.", "count"),
        is_harmless=True,
    ),
    "run_now": Verb(
        name="run_now",
        label=gettext_lazy("Run now"),
        permission=permissions.REQUEUE,
        title=gettext_lazy("Run jobs now"),
        question=ngettext_lazy("Queue %(count)s %(state)s job now?", "Queue %(count)s %(state)s jobs now?", "count"),
        done=ngettext_lazy("%(count)s job is queued now.", "%(count)s jobs are queued now.", "count"),
        is_harmless=True,
    ),
    "cancel": Verb(
        name="cancel",
        label=gettext_lazy("Cancel jobs"),
        permission=permissions.CANCEL,
        title=gettext_lazy("Cancel jobs"),
        question=ngettext_lazy("Cancel %(count)s %(state)s job?", "Cancel %(count)s %(state)s jobs?", "count"),
        consequence=_GONE,
        done=ngettext_lazy("%(count)s job was cancelled.", "%(count)s jobs were cancelled.", "count"),
    ),
    "discard": Verb(
        name="discard",
        label=gettext_lazy("Discard"),
        permission=permissions.DISCARD,
        title=gettext_lazy("Discard dead letters"),
        question=ngettext_lazy("Discard %(count)s dead letter?", "Discard %(count)s dead letters?", "count"),
        consequence=gettext_lazy("Their arguments and failures are deleted. This cannot be undone."),
        done=ngettext_lazy("%(count)s dead letter was discarded.", "%(count)s dead letters were discarded.", "count"),
    ),
    "purge": Verb(
        name="purge",
        label=gettext_lazy("Purge"),
        permission=permissions.PURGE,
        title=gettext_lazy("Purge waiting jobs"),
        question=ngettext_lazy("Purge %(count)s waiting job?", "Purge %(count)s waiting jobs?", "count"),
        consequence=format_lazy(
            "{} {}",
            gettext_lazy(
                "This includes scheduled jobs and jobs waiting for a retry. Running jobs and dead letters are kept."
            ),
            _GONE,
        ),
        done=ngettext_lazy("%(count)s job was purged.", "%(count)s jobs were purged.", "count"),
    ),
    "erase": Verb(
        name="erase",
        label=gettext_lazy("Erase"),
        permission=permissions.PURGE,
        title=gettext_lazy("Erase a client"),
        question=ngettext_lazy(
            "This deletes all that is kept: %(count)s job.", "This deletes all that is kept: %(count)s jobs.", "count"
        ),
        consequence=gettext_lazy(
            "Waiting jobs, dead letters, outcomes, logs, steps and workflows are deleted. This cannot be undone. "
            "Running jobs go on: erase again when they have finished. Limits stay."
        ),
        done=ngettext_lazy("%(count)s job was erased.", "%(count)s jobs were erased.", "count"),
        nothing=gettext_lazy("Nothing was done: nothing is kept of the client."),
    ),
}
JOBS["stop"] = replace(
    JOBS["cancel"],
    consequence=gettext_lazy(
        "When they stop, they are cancelled and never run again, even if their work is incomplete."
    ),
    done=ngettext_lazy("%(count)s job was asked to stop.", "%(count)s jobs were asked to stop.", "count"),
)
JOBS["terminate"] = replace(
    JOBS["cancel"],
    name="terminate",
    label=gettext_lazy("Terminate"),
    title=gettext_lazy("Terminate a job"),
    question=gettext_lazy("This kills the process that runs the job."),
    consequence=gettext_lazy(
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
            _(
                "An earlier run of this job has committed, so its function is not called again, and other "
                "arguments would not be used. Requeue it as it is: it succeeds at once. To run the function "
                "with other arguments, enqueue a new job."
            )
        )
    OneJob(place, target.name, target.queue).requeue_changed(**target.value)


_REFUSED = {WrongState: gettext_lazy("Nothing was done: %(error)s")}
#: With one job. Texts name %(id)s.
OF_JOB: Sequence[Verb] = (
    _of_one("requeue", _is_dead, question=""),
    _of_one("requeue", _is_dead, label=gettext_lazy("Requeue in another queue")),
    Verb(
        name="edit", label=gettext_lazy("Requeue with other arguments"), permission=permissions.EDIT,
        do=_requeue_changed,
        log=gettext_lazy("Requeued with changed arguments."),
        done=gettext_lazy("Job %(id)s was requeued with the new arguments."),
        refused=_REFUSED,
        applies=lambda job: _is_dead(job) and not is_internal(job.task), is_harmless=True,
        title=gettext_lazy("Requeue with other arguments"),
        question=gettext_lazy("Job %(id)s is requeued with these arguments, and its attempts are counted anew."),
        consequence=gettext_lazy("Asterisks hide secret values. Leave them as they are to keep the values."),
    ),
    _of_one("discard", _is_dead),
    Verb(
        name="send", label=gettext_lazy("Send an event"), permission=permissions.EDIT, is_harmless=True,
        do=lambda place, target: OneJob(place, target.name, target.queue).send(**target.value),
        log=gettext_lazy("Sent event %(event)s."),
        done=gettext_lazy("Job %(id)s has got the event."),
        refused=_REFUSED,
        applies=lambda job: bool(job.event),
        title=gettext_lazy("Send an event"),
        question=gettext_lazy("Job %(id)s waits for event %(event)s."),
        consequence=gettext_lazy("It gets this value, and goes on at once."),
    ),
    _of_one("run_now", lambda job: job.state in WAITING and bool(job.due_at), question=""),
    Verb(
        name="again", label=gettext_lazy("Enqueue again"), permission=permissions.ENQUEUE, applies=_may_run_again,
        is_harmless=True, question=gettext_lazy("Enqueue again"),
        page=lambda job, url, here: url(
            "registeredtask_enqueue", job.task, query={"job": job.id, "queue": job.queue}
        ),
    ),
    _of_one(
        "cancel",
        lambda job: job.state in WAITING or (job.state is JobState.RUNNING and not job.is_stopping),
        label=gettext_lazy("Cancel job"),
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


# -- words


def words_of(sweep: Sweep) -> Verb:
    """The row of what is done."""
    of_running = "terminate" if sweep.terminates else "stop"
    return JOBS[of_running if list(sweep.states) == ["running"] else sweep.verb]


def question(sweep: Sweep, count: Count) -> str:
    """The question before something is done with so many jobs. If not all were looked at, there may be more."""
    states = _("waiting")
    if len(sweep.states) == 1 or not set(sweep.states) <= set(WAITING):
        states = ", ".join(str(STATE_LABELS[JobState(state)]) for state in sweep.states if state != "finished")
    text: str = words_of(sweep).question % {"count": Grouped(count.count), "state": states}
    if count.is_complete:
        return text
    more = _("There may be more: %(searched)s of %(total)s jobs were looked at.")
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
    text = words_of(sweep).nothing or _("Nothing was done: no job matches any more. Someone else may have acted first.")
    return str(text)


def waiting_texts(readers: Readers, queue: str) -> Iterator[str]:
    """Why jobs that have come to a queue have to wait there."""
    if readers.queues.get(queue).paused:
        yield _("Queue %(name)s is paused: the jobs wait until it is resumed.") % {"name": queue}
    if not readers.workers([queue]):
        text = _("No worker serves queue %(name)s now: the jobs wait. Start one: %(command)s")
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
