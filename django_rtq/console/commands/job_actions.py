"""What rtq_jobs does with jobs: with those of some ids, or with all that match."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from django.core.management.base import CommandError

from django_rtq.console.commands.command import ConsoleCommand
from django_rtq.console.commands.job_arguments import VERBS
from django_rtq.console.commands.job_selection import find_one, read_selection, selected_queues
from django_rtq.console.commands.prompts import check_interactive, confirm
from django_rtq.console.inspector.actions import ACTIONS, Answers, check_target
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.members import viewed_places
from django_rtq.console.inspector.selection import Selection
from django_rtq.console.inspector.sweep import Count, Result, Sweep, run_steps
from django_rtq.console.nouns import find_jobs
from django_rtq.console.output import ProgressLine, as_json, count, number
from django_rtq.console.redaction import redacted
from django_rtq.core.commands.command import INTERRUPTED, one_line
from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import JobError, JobNotFound, WrongState

AT_ONCE = 100  # jobs of one step: what was done before an error is known that exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How an action is told."""

    done: str
    jobs: str = "job"
    question: str = ""  # with the number of jobs; "": it is not asked


WORDS: Mapping[str, Words] = {
    "requeue": Words(done="requeued", jobs="dead letter"),
    "discard": Words(
        done="discarded", jobs="dead letter", question="permanently deletes {jobs}, with all arguments and failures"
    ),
    "cancel": Words(done="cancelled", question="cancels {jobs}"),
    "run": Words(done="queued"),
}


class JobAction:
    """One call of rtq_jobs that does something. All methods raise CommandError."""

    def __init__(self, command: ConsoleCommand, options: dict[str, Any]) -> None:
        self._command, self._options, self._inspector = command, options, get_inspector()
        self._action: str = options["action"]
        self._verb, self._words = VERBS[self._action], WORDS[self._action]
        self._target: str = options.get("to") or ""
        self._shown = options["verbosity"] > 0
        self._is_of_dead = self._verb in ("requeue", "discard")  # those are named by their number

    def run(self) -> None:
        """Do it, and say what was done."""
        if self._target:
            self._check_target()
        (self._act_on_ids if self._options["ids"] else self._act_on_matching)()

    # -- which jobs

    def _act_on_ids(self) -> None:
        options, job_ids = self._options, list(dict.fromkeys(self._options["ids"]))
        sweep = self._sweep(Selection(queues=selected_queues(self._inspector, options)))
        steps = self._inspector.sweeps.steps_for_ids(self._verb, sweep.selection.queues, job_ids, sweep.how("running"))
        result = run_steps(steps)
        answers = {} if result.stopped_by else {job_id: result.answers.get(job_id, "missing") for job_id in job_ids}
        failed = self._failed(answers)
        self._report(result, failed)
        if failed:
            asked = count(len(job_ids), "id" if self._is_of_dead else "job")
            raise CommandError(f"{number(len(failed))} of {asked} could not be {self._words.done}.")

    def _act_on_matching(self) -> None:
        options, words = self._options, self._words
        sweep = self._sweep(read_selection(self._inspector, options))
        asks = bool(words.question) and options["interactive"] and not options["dry_run"]
        if asks:
            check_interactive()
        with ProgressLine(self._command.stderr, f"{words.jobs.capitalize()}s found", shown=self._shown) as progress:
            counted, steps = (self._newest if options["limit"] else self._all)(sweep, progress)
        if options["dry_run"]:
            self._report_dry_run(counted)
            return
        if asks and counted.count:
            does = words.question.format(jobs=count(counted.count, words.jobs))
            confirm(self._command.stderr, f"This {does}. Type 'yes' to continue:", expected="yes")
        with ProgressLine(self._command.stderr, words.done.capitalize(), counted.count, shown=self._shown) as progress:
            result = run_steps(steps, show=progress.show)
        self._report(result, {} if self._is_of_dead else self._failed(result.answers))

    def _all(self, sweep: Sweep, progress: ProgressLine) -> tuple[Count, Iterator[Result]]:
        """All that match. Jobs that die, or are made, later are left out."""
        sweeps = self._inspector.sweeps
        counted = sweeps.count(sweep, most=sys.maxsize, show=progress.show, shown=redacted)
        if not self._is_of_dead and counted.count >= AT_ONCE:
            progress.show(counted.count)
        sweep = replace(sweep, selection=replace(sweep.selection, until_ms=counted.until_ms))
        return counted, sweeps.steps(sweep, limit=AT_ONCE, shown=redacted)

    def _newest(self, sweep: Sweep, progress: ProgressLine) -> tuple[Count, Iterator[Result]]:
        """The first that match, up to --limit; of dead letters, the newest of all queues together."""
        by_place: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        selection = replace(sweep.selection, states=sweep.states)
        found = find_jobs(self._inspector, selection)
        for seen, job in enumerate(islice(found, self._options["limit"]), 1):
            by_place[job.queue, str(job.state)].append(job.id)
            if seen % AT_ONCE == 0:
                progress.show(seen)
        numbers: Counter[str] = Counter()
        for (queue, _), ids in by_place.items():
            numbers[queue] += len(ids)
        steps = (
            self._inspector.sweeps.steps_for_ids(self._verb, [queue], ids, sweep.how(state))
            for (queue, state), ids in by_place.items()
        )
        return Count(by_queue=numbers), chain.from_iterable(steps)

    def _sweep(self, selection: Selection) -> Sweep:
        terminates = bool(self._options.get("terminate"))
        return Sweep(verb=self._verb, selection=selection, target=self._target, terminates=terminates)

    # -- what to say

    def _failed(self, answers: Answers) -> Answers:
        """The jobs with which it was not done, and why not."""
        is_refused = ACTIONS[self._verb].is_refused
        return {job_id: self._why_not(job_id, answer) for job_id, answer in answers.items() if is_refused(answer)}

    def _why_not(self, job_id: str, answer: str) -> str:
        """Why nothing was done with a job."""
        if answer not in ("missing", "left"):
            return one_line(WrongState(job_id, ACTIONS[self._verb].why_not(answer)))
        try:
            job = find_one(self._inspector, job_id, self._options)
        except JobError as error:
            return one_line(error)
        if answer == "left" and job.state is not JobState.DEAD:
            return one_line(WrongState(job_id, f"is not a dead letter: it is {job.state}, in queue {job.queue}."))
        if answer == "left":
            why = "it has died just now, or it is unique and another job of the same key is alive"
            return f"Job {job_id} is still dead: {why}."
        return one_line(JobNotFound(job_id))

    def _report(self, result: Result, failed: Answers) -> None:
        """Say what was done. Raises CommandError if it was stopped."""
        many = count(result.count, self._words.jobs)
        (self._report_dead if self._is_of_dead else self._report_jobs)(result, failed)
        if self._target and result.count:
            self._warn_if_nobody_serves()
        if result.stopped_by is not None:
            raise stopped(result, f"{many} had been {self._words.done} before; run this again for the rest")

    def _report_dead(self, result: Result, failed: Answers) -> None:
        write, did = self._command.stdout.write, self._words.done
        if self._options["json"]:
            write(as_json({did: result.count, "ids": result.done}))
        elif self._shown:
            if self._options["verbosity"] > 1:
                write("".join(f"{one_line(job_id)}\n" for job_id in result.done), ending="")
            where = f" in queue {self._target}" if self._target else ""
            write(f"{did.capitalize()} {count(result.count, self._words.jobs)}{where}.")
        for problem in failed.values():
            self._command.stderr.write(problem)

    def _report_jobs(self, result: Result, failed: Answers) -> None:
        options, has_ids = self._options, bool(self._options["ids"])
        before = [job_id for job_id, word in result.answers.items() if word == ACTIONS[self._verb].done_before]
        told = [*result.done, *before] if has_ids else result.done
        answers = {job_id: _shown_answer(result.answers.get(job_id, self._words.done)) for job_id in told}
        if options["json"]:
            self._command.stdout.write(as_json({"jobs": answers, "failed": failed}))
            return
        tells_each = has_ids or options["verbosity"] > 1
        lines = [self._text_of(answer).format(one_line(job_id)) for job_id, answer in answers.items() if tells_each]
        if not has_ids:
            lines.append(self._sum_of(answers))
        for line in lines if self._shown else ():
            self._command.stdout.write(line)
        if tells_each:
            for problem in failed.values():
                self._command.stderr.write(problem)

    def _text_of(self, answer: str) -> str:
        """What became of one job."""
        if answer == "asked" and self._options.get("terminate"):
            return "Its process will be killed, if it still runs: job {}."
        return {
            "asked": "Asked to stop: job {}.",
            "cancelled": "Cancelled job {}.",
            "already": "Was cancelled already: job {}.",
            "queued": "Queued job {}.",
        }[answer]

    def _sum_of(self, answers: Answers) -> str:
        """What became of all."""
        asked = sum(answer == "asked" for answer in answers.values())
        text = f"{self._words.done.capitalize()} {count(len(answers) - asked, 'job')}"
        return f"{text}, and asked {count(asked, 'job')} to stop." if asked else f"{text}."

    def _report_dry_run(self, counted: Count) -> None:
        if self._options["json"]:
            self._command.stdout.write(as_json({"dry_run": True, "jobs": counted.count, "queues": counted.by_queue}))
            return
        where = ", ".join(f"{one_line(queue)} {number(jobs)}" for queue, jobs in counted.by_queue.items())
        text = f"{count(counted.count, self._words.jobs)} would be {self._words.done}"
        self._command.stdout.write(f"{text}{where and ' (' + where + ')'}. Nothing was changed.")

    # -- another queue in which they are requeued

    def _check_target(self) -> None:
        try:
            check_target(self._target, viewed_places())
        except ValueError as error:
            raise CommandError(one_line(error)) from error

    def _warn_if_nobody_serves(self) -> None:
        target, write = self._target, self._command.stderr.write
        if self._inspector.queues.get(target).paused:
            write(f"Queue {target} is paused: they wait until it is resumed.")
        if not self._inspector.workers([target]):
            start = f"python manage.py rtq_worker --queues {target}"
            write(f"No worker serves queue {target} now: they wait. Start one:  {start}")


def stopped(result: Result, done: str) -> CommandError:
    """The error of an action that was stopped; `done` says what was done before."""
    interrupted = isinstance(result.stopped_by, KeyboardInterrupt)
    error = CommandError(
        f"{'Stopped.' if interrupted else one_line(result.stopped_by)} {done}.",
        returncode=INTERRUPTED if interrupted else 1,
    )
    error.__cause__ = result.stopped_by
    return error


def _shown_answer(answer: str) -> str:
    """Without the worker that was asked."""
    return answer.partition(" ")[0]
