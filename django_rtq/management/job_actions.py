"""What rtq_jobs does with jobs: requeue and discard dead letters, cancel and move jobs, run delayed ones now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from django.core.management.base import CommandError

from django_rtq.exceptions import BrokerError, JobError
from django_rtq.inspector.inspector import Inspector, get_inspector
from django_rtq.inspector.jobs.dead_letters import BulkResult, run_steps
from django_rtq.jobs.job import CancelAnswer, made_ms, new_job_id
from django_rtq.management.command import INTERRUPTED, RTQCommand
from django_rtq.management.job_selection import (
    find_dead_letter,
    find_jobs,
    job_filter,
    selected_queues,
    selects_only,
)
from django_rtq.management.move_target import check_target, warn_if_nobody_serves
from django_rtq.management.output import ProgressLine, as_json, count, number, one_line
from django_rtq.management.prompts import check_interactive, confirm

AT_ONCE = 100  # dead letters of one step: what was done before an error is known that exactly
DONE = {"requeue": "requeued", "discard": "discarded", "cancel": "cancelled", "run": "queued", "move": "moved"}
QUEUED, MOVED = "queued", "moved"  # the answers of run and move


def act_on_dead_letters(command: RTQCommand, options: dict[str, Any]) -> None:
    """Requeue or discard the dead letters that the options select. Raises CommandError."""
    (_act_on_dead_ids if options["ids"] else _act_on_dead_matches)(command, options)


def _act_on_dead_ids(command: RTQCommand, options: dict[str, Any]) -> None:
    inspector, job_ids = get_inspector(), list(dict.fromkeys(options["ids"]))
    steps = inspector.bulk_steps_for_ids(selected_queues(inspector, options), options["action"], job_ids)
    result = run_steps(steps)
    _report_dead(command, result, options)
    left = set(job_ids) - set(result.done)
    for name in job_ids:
        if name in left:
            command.stderr.write(_why_not(inspector, name, options))
    if left:
        did = DONE[options["action"]]
        raise CommandError(f"{number(len(left))} of {count(len(job_ids), 'id')} could not be {did}.")


def _act_on_dead_matches(command: RTQCommand, options: dict[str, Any]) -> None:
    asks = options["action"] == "discard" and options["interactive"]
    if asks:
        check_interactive()
    shown = options["verbosity"] > 0
    with ProgressLine(command.stderr, "Dead letters found", shown=shown) as progress:
        found = (_newest if options["limit"] else _all)(get_inspector(), options, progress)
    if asks and found.total:
        question = f"This permanently deletes {count(found.total, 'dead letter')}. Type 'yes' to continue:"
        confirm(command.stderr, question, expected="yes")
    with ProgressLine(command.stderr, DONE[options["action"]].capitalize(), found.total, shown=shown) as progress:
        result = run_steps(found.steps, show=progress.show)
    _report_dead(command, result, options)


def _report_dead(command: RTQCommand, result: BulkResult, options: dict[str, Any]) -> None:
    did, many = DONE[options["action"]], count(len(result.done), "dead letter")
    if options["json"]:
        command.stdout.write(as_json({did: len(result.done), "ids": result.done}))
    elif options["verbosity"]:
        if options["verbosity"] > 1:
            command.stdout.write("".join(f"{one_line(name)}\n" for name in result.done), ending="")
        command.stdout.write(f"{did.capitalize()} {many}.")
    if result.stopped_by is not None:
        raise _stopped(result.stopped_by, f"{many} had been {did} before")


class _Found(NamedTuple):
    total: int
    steps: Iterator[BulkResult]  # that requeue or discard them


def _all(inspector: Inspector, options: dict[str, Any], progress: ProgressLine) -> _Found:
    """All that match. They are counted in Redis, and jobs that die later are left out."""
    wanted, total = job_filter(options), 0
    until_ms: dict[str, int] = {}
    for queue in selected_queues(inspector, options):
        show = partial(_show_sum, progress, total)
        selection = inspector.dead_letters.select(queue, wanted, depth=sys.maxsize, show=show)
        total, until_ms[queue] = total + selection.count, selection.until_ms
    action = options["action"]
    steps = (inspector.bulk_steps(q, action, wanted, until_ms=ms, limit=AT_ONCE) for q, ms in until_ms.items())
    return _Found(total, chain.from_iterable(steps))


def _newest(inspector: Inspector, options: dict[str, Any], progress: ProgressLine) -> _Found:
    """The newest that match, of all queues together, up to --limit."""
    by_queue: dict[str, list[str]] = {}
    total = 0
    for job in find_jobs(inspector, options, options["limit"]):
        by_queue.setdefault(job.queue, []).append(job.id)
        total += 1
        if total % AT_ONCE == 0:
            progress.show(total)
    steps = (inspector.bulk_steps_for_ids([queue], options["action"], ids) for queue, ids in by_queue.items())
    return _Found(total, chain.from_iterable(steps))


def _show_sum(progress: ProgressLine, before: int, count: int) -> None:
    progress.show(before + count)


def _why_not(inspector: Inspector, name: str, options: dict[str, Any]) -> str:
    try:
        find_dead_letter(inspector, name, options)
    except JobError as error:
        return one_line(error)
    return f"Job {name} is still dead: it has died just now, or it is unique and another job of the same key is alive."


# -- cancel, run, move


def act_on_jobs(command: RTQCommand, options: dict[str, Any]) -> None:
    """Cancel the jobs that the options select, queue them now, or move them. Raises CommandError."""
    inspector = get_inspector()
    if options["action"] == "move":
        check_target(inspector, options["to"], options["queue"])
    for name, cancel_all in (("client", _cancel_client), ("task", _cancel_task)):
        if options["action"] == "cancel" and selects_only(name, options):
            cancel_all(command, inspector, options)
            return
    if options["ids"]:
        pairs: list[tuple[str, str | None]] = [(name, options["queue"]) for name in dict.fromkeys(options["ids"])]
    else:
        pairs = _matching(command, inspector, options)
    answers: dict[str, str] = {}
    failed: dict[str, str] = {}
    stopped_by = _act_on_each(command, pairs, _act_of(inspector, options), options, answers, failed)
    _report(command, options, answers, failed)
    if options["action"] == "move" and answers:
        warn_if_nobody_serves(command, inspector, options["to"])
    did = DONE[options["action"]]
    if stopped_by is not None:
        raise _stopped(stopped_by, f"{count(len(answers), 'job')} had been {did} before")
    if failed and options["ids"]:
        raise CommandError(f"{number(len(failed))} of {count(len(pairs), 'job')} could not be {did}.")


def _cancel_client(command: RTQCommand, inspector: Inspector, options: dict[str, Any]) -> None:
    """Cancel all waiting jobs of a client that exist now, however many there are."""
    client, queues, until_ms = options["client"], selected_queues(inspector, options), made_ms(new_job_id())
    if options["interactive"]:
        check_interactive()
    total = sum(found.queued + found.scheduled for found in inspector.clients.get(client, queues))
    if total and options["interactive"]:
        confirm(command.stderr, f"This cancels {count(total, 'job')}. Type 'yes' to continue:", expected="yes")
    _run_cancelling(command, options, inspector.client_jobs.steps(client, queues, until_ms), total)


def _cancel_task(command: RTQCommand, inspector: Inspector, options: dict[str, Any]) -> None:
    """Cancel all waiting jobs of a task that exist now, however many there are."""
    task, queues, until_ms = options["task"], selected_queues(inspector, options), made_ms(new_job_id())
    if options["interactive"]:
        check_interactive()
        where = f"queue {options['queue']}" if options["queue"] else "all queues"
        question = f"This cancels all waiting jobs of task {one_line(task, 300)} in {where}. Type 'yes' to continue:"
        confirm(command.stderr, question, expected="yes")
    _run_cancelling(command, options, inspector.task_jobs.steps(task, queues, until_ms))


def _run_cancelling(
    command: RTQCommand, options: dict[str, Any], steps: Iterator[BulkResult], total: int | None = None
) -> None:
    with ProgressLine(command.stderr, "Cancelled", total, shown=options["verbosity"] > 0) as progress:
        result = run_steps(steps, show=progress.show)
    _report(command, options, dict.fromkeys(result.done, CancelAnswer.CANCELLED), {})
    if result.stopped_by is not None:
        raise _stopped(result.stopped_by, f"{count(len(result.done), 'job')} had been cancelled before")


def _matching(command: RTQCommand, inspector: Inspector, options: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Ids and queues of the jobs that match; asks before many are cancelled or moved."""
    asks = options["action"] != "run" and options["interactive"]
    if asks:
        check_interactive()
    pairs: list[tuple[str, str | None]] = []
    with ProgressLine(command.stderr, "Jobs found", shown=options["verbosity"] > 0) as progress:
        for job in find_jobs(inspector, options, options["limit"]):
            pairs.append((job.id, job.queue))
            if len(pairs) % AT_ONCE == 0:
                progress.show(len(pairs))
    if asks and pairs:
        jobs = count(len(pairs), "job")
        does = f"moves {jobs} to queue {options['to']}" if options["action"] == "move" else f"cancels {jobs}"
        confirm(command.stderr, f"This {does}. Type 'yes' to continue:", expected="yes")
    return pairs


def _act_on_each(
    command: RTQCommand,
    pairs: Iterable[tuple[str, str | None]],
    act: Callable[[str, str | None], str],
    options: dict[str, Any],
    answers: dict[str, str],
    failed: dict[str, str],
) -> BrokerError | KeyboardInterrupt | None:
    title, total = DONE[options["action"]].capitalize(), len(list(pairs))
    shown = options["verbosity"] > 0 and not options["ids"]
    with ProgressLine(command.stderr, title, total, shown=shown) as progress:
        try:
            for name, queue in pairs:
                try:
                    answers[name] = act(name, queue)
                except JobError as error:
                    failed[name] = one_line(error)
                if len(answers) % AT_ONCE == 0:
                    progress.show(len(answers))
        except (BrokerError, KeyboardInterrupt) as error:
            if not answers:
                raise
            return error
    return None


def _act_of(inspector: Inspector, options: dict[str, Any]) -> Callable[[str, str | None], str]:
    if options["action"] == "cancel":
        return partial(_cancel, inspector, options["terminate"])
    return partial(_move, inspector, options["to"]) if options["action"] == "move" else partial(_run, inspector)


def _cancel(inspector: Inspector, terminate: bool, job_id: str, queue: str | None) -> str:
    return inspector.cancel(job_id, queue, terminate=terminate)


def _run(inspector: Inspector, job_id: str, queue: str | None) -> str:
    inspector.run_now(job_id, queue)
    return QUEUED


def _move(inspector: Inspector, target: str, job_id: str, queue: str | None) -> str:
    inspector.job_mover.move(job_id, target, queue)
    return MOVED


def _report(command: RTQCommand, options: dict[str, Any], answers: dict[str, str], failed: dict[str, str]) -> None:
    if options["json"]:
        command.stdout.write(as_json({"jobs": answers, "failed": failed}))
        return
    asked = (
        "Its process will be killed, if it still runs: job {}."
        if options.get("terminate")
        else "Asked to stop: job {}."
    )
    words = {
        CancelAnswer.CANCELLED: "Cancelled job {}.",
        CancelAnswer.ASKED: asked,
        QUEUED: "Queued job {}.",
        MOVED: f"Moved job {{}} to queue {options.get('to')}.",
    }
    if options["verbosity"] > 1 or (options["ids"] and options["verbosity"]):
        for name, answer in answers.items():
            command.stdout.write(words[answer].format(one_line(name)))
    if not options["ids"] and options["verbosity"]:
        numbers = {
            answer: list(answers.values()).count(answer) for answer in (DONE[options["action"]], CancelAnswer.ASKED)
        }
        done, asked_to_stop = numbers.values()
        more = f", and asked {count(asked_to_stop, 'job')} to stop" if asked_to_stop else ""
        more = f" to queue {options['to']}" if options["action"] == "move" else more
        command.stdout.write(f"{DONE[options['action']].capitalize()} {count(done, 'job')}{more}.")
    if options["ids"] or options["verbosity"] > 1:
        for problem in failed.values():
            command.stderr.write(problem)
    elif failed and options["action"] == "move":
        problem = next(iter(failed.values()))
        command.stderr.write(f"{count(len(failed), 'job')} could not be moved. The first one: {problem}")


def _stopped(error: BrokerError | KeyboardInterrupt, done: str) -> CommandError:
    interrupted = isinstance(error, KeyboardInterrupt)
    stopped = CommandError(
        f"{'Stopped.' if interrupted else one_line(error)} {done}; run this again for the rest.",
        returncode=INTERRUPTED if interrupted else 1,
    )
    stopped.__cause__ = error
    return stopped
