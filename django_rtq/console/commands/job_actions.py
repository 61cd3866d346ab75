"""What rtq_jobs does: its options, which jobs these select, and what is done with them; and how commands purge."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.acting.actions import done_text, question, waiting_texts, words_of
from django_rtq.console.commands.command import AFTER, ALL, CLIENT, LIMIT, NO_INPUT, QUEUE, Action, ConsoleCommand
from django_rtq.console.commands.prompts import check_interactive, confirm, known_queues, utf8_text
from django_rtq.console.merging import grouped
from django_rtq.console.nouns import find_jobs
from django_rtq.console.output import ProgressLine, as_json, count, number
from django_rtq.console.reading.actions import ACTIONS, Answers, Verb, check_target
from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import LISTS, QueryError, Selection
from django_rtq.console.reading.sweep import STEP, Count, Result, Sweep, run_steps
from django_rtq.console.redaction import redacted
from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.commands.command import INTERRUPTED, WRONG_USAGE, Argument, one_line
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import BrokerError, JobError, JobNotFound, WrongState

AT_ONCE = 100  # jobs of one step: what was done before an error is known that exactly
#: What each action is called in the table of actions, and what it has done with a job.
VERBS: dict[str, tuple[Verb, str]] = {
    "requeue": ("requeue", "requeued"),
    "discard": ("discard", "discarded"),
    "cancel": ("cancel", "cancelled"),
    "run": ("run_now", "queued"),
}
LISTED_STATES = ("running", "retrying", "queued", "scheduled", "dead")  # unless --state names others
FILTERS = ("queue", "task", "client", "state", "error", "since", "query")

IDS = Argument("ids", nargs="*", type=utf8_text, metavar="ID", help="Ids of jobs, of any queue.")


def _state(usual: Sequence[str], allowed: Sequence[str]) -> Argument:
    text = f"Only those in these states, of {', '.join(allowed)} (default: {', '.join(usual)})."
    return Argument("--state", metavar="A,B", help=text)


def _which(limit: str, *others: Argument) -> list[Argument]:
    """The options that select jobs. `limit`: the help of that."""
    return [
        IDS,
        QUEUE,
        Argument(
            "--task", type=utf8_text, metavar="TASK", help="Only those of this task: its full name, or the end of it."
        ),
        CLIENT.but(help="Only those of this client; '' for jobs without one."),
        Argument(
            "--error",
            metavar="ERROR",
            type=utf8_text,
            help="Only those whose newest failure has this class (its full name, or the end of it), "
            "or has this in its message.",
        ),
        Argument(
            "--since",
            metavar="WHEN",
            help="Only those that died, finished, are due, or else became ready since then: 90s, 30min, 2h, 7d ago, or "
            "a time such as 2026-01-31T08:00.",
        ),
        Argument(
            "--query",
            metavar="QUERY",
            type=utf8_text,
            help="Only those that the search of the admin finds, such as 'state:dead task:ship since:1h'.",
        ),
        LIMIT.but(help=limit),
        ALL.but(help="All jobs, or all that match."),
        *others,
    ]


JOB_ACTIONS = {
    "list": Action(
        "Show jobs: the running ones first, and dead letters with the newest first. Finished jobs only with "
        "--state finished.",
        _which(
            "The first N (default: 50; no limit with --all and with --json).",
            _state(LISTED_STATES, LISTS),
            AFTER.but(default=""),
        ),
        reads_only=True,
        json='Print {"jobs": [...], "next": cursor for --after, or null}, with arguments and tracebacks; secrets are '
        "hidden as in the admin.",
    ),
    "show": Action(
        "Show all that is known of some jobs: arguments, times, failed runs, the result.",
        [IDS.but(nargs="+"), QUEUE],
        reads_only=True,
        json="Print a JSON list, with all failures; secrets are hidden as in the admin.",
    ),
    "cancel": Action(
        "Cancel queued, scheduled and retrying jobs, and ask running jobs to stop. Needs ids, a filter, or "
        "--all; asks for confirmation, except for ids. Filters select running jobs only with --state running.",
        _which(
            "The first N of them, as list shows them.",
            _state(ACTIONS["cancel"].usual_states, ACTIONS["cancel"].states),
            NO_INPUT,
            Argument(
                "--terminate",
                action="store_true",
                help="Kill the process of a running job, if it does not stop when asked. Other jobs of that process "
                "are queued again.",
            ),
        ),
        json='Print {"jobs": {id: "cancelled" or "asked"}, "failed": {id: why}}.',
    ),
    "requeue": Action(
        "Queue dead letters again, with all their attempts. Needs ids, a filter, or --all.",
        _which(
            "The newest N of them, to try it with a few.",
            Argument("--to", metavar="QUEUE", help="Another queue of the settings, where they go."),
        ),
        json='Print {"requeued": n, "ids": [...]}.',
    ),
    "discard": Action(
        "Delete dead letters permanently. Needs ids, a filter, or --all; asks for confirmation, except for ids.",
        _which("The newest N of them.", NO_INPUT),
        json='Print {"discarded": n, "ids": [...]}.',
    ),
    "run": Action(
        "Queue scheduled and retrying jobs now. Needs ids, a filter, or --all.",
        _which(
            "The first N of them, as list shows them.",
            _state(ACTIONS["run_now"].usual_states, ACTIONS["run_now"].states),
        ),
        json='Print {"jobs": {id: "queued"}, "failed": {id: why}}.',
    ),
    "send": Action(
        "Give a job an event for which it waits, now or later.",
        [
            IDS.but(nargs=1, help="The id of the job, in any queue."),
            Argument("event", type=utf8_text, metavar="EVENT", help="The name of the event."),
            Argument("value", nargs="?", default="null", type=utf8_text, metavar="JSON", help="Its value."),
            QUEUE,
        ],
        reads_only=True,  # there is nothing to try
        json='Print {"sent": id}.',
    ),
}


def check_selection(options: dict[str, Any]) -> None:
    """Raises CommandError, for wrong usage, if it is unclear which jobs the options select."""
    if problem := _problem(options):
        raise CommandError(problem, returncode=WRONG_USAGE)


def _problem(options: dict[str, Any]) -> str:
    given, ids = filters_in(options), options["ids"]
    for name in ("queue", "task", "error", "query", "to"):
        if options.get(name) is not None and not options[name].strip():  # an empty shell variable is not "all of them"
            return f"--{name} is empty. Leave it out, or give a value."
    beside = [name for name in (*given, "limit", "after", "all", "dry_run") if options.get(name) and name != "queue"]
    if ids and beside:
        option = beside[0].replace("_", "-")
        return f"Give either ids or --{option}: together it is not clear which jobs you mean."
    if ids or given or options["all"] or options["action"] == "list":
        return ""
    filters = ", ".join(f"--{name}" for name in FILTERS if name in options)
    return f"Which jobs? Give ids, or a filter ({filters}), or --all to {options['action']} every one of every queue."


def filters_in(options: dict[str, Any]) -> list[str]:
    """The names of the filters that are given."""
    return [name for name in FILTERS if options.get(name) is not None]


@override("en")
def read_selection(readers: Readers, options: dict[str, Any]) -> Selection:
    """The jobs that the options describe. Raises CommandError."""
    fields = {name: options[name] for name in filters_in(options) if name not in ("query", "state")}
    if options.get("state") is not None:
        fields["state"] = [name.strip() for name in options["state"].split(",")]
    try:
        selection = read_query(readers, options["query"] or "").narrowed(**fields)
    except QueryError as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from None
    known_queues(readers, selection.queues)
    return selection


def in_named_queue(job: JobDetails, options: dict[str, Any]) -> JobDetails:
    """The job, which was looked for by its id. Raises JobNotFound if it is in another queue than that of --queue."""
    if options["queue"] not in (None, job.queue):
        raise JobNotFound(job.id)
    return job


class JobAction:
    """One call of rtq_jobs that does something. All methods raise CommandError."""

    def __init__(self, command: ConsoleCommand, options: dict[str, Any]) -> None:
        self._command, self._options, self._readers = command, options, command.readers
        self._verb, self._did = VERBS[options["action"]]
        self._target: str = options.get("to") or ""
        self._is_of_dead = self._verb in ("requeue", "discard")  # those are told by their number
        self._noun = "dead letter" if self._is_of_dead else "job"

    @override("en")
    def run(self) -> None:
        """Do it, and say what was done."""
        if self._target:
            self._check_target()
        (self._act_on_ids if self._options["ids"] else self._act_on_matching)()

    # -- which jobs

    def _act_on_ids(self) -> None:
        options, job_ids = self._options, list(dict.fromkeys(self._options["ids"]))
        queues = known_queues(self._readers, filter(None, [options["queue"]]))
        sweep = self._sweep(Selection(queues=queues, ids=job_ids))
        result = run_steps(self._readers.sweeps.steps(sweep))
        if result.stopped_by is not None and not result.answers:
            raise result.stopped_by
        answers = {} if result.stopped_by else {job_id: result.answers.get(job_id, "missing") for job_id in job_ids}
        failed = self._failed(answers)
        self._report(sweep, result, failed)
        if failed:
            asked = count(len(job_ids), "id" if self._is_of_dead else "job")
            raise CommandError(f"{number(len(failed))} of {asked} could not be {self._did}.")

    def _act_on_matching(self) -> None:
        options, sweep = self._options, self._sweep(read_selection(self._readers, self._options))
        parts = self._newest(sweep) if options["limit"] else None
        counted, result = ask_and_act(self._command, options, sweep, parts, limit=AT_ONCE)
        if options["dry_run"]:
            self._report_dry_run(counted)
        else:
            self._report(sweep, result, {} if self._is_of_dead else self._failed(result.answers))

    def _newest(self, sweep: Sweep) -> list[Sweep]:
        """The first that match, up to --limit; of dead letters, the newest of all queues together."""
        found = find_jobs(self._readers, replace(sweep.selection, states=sweep.states), shown=redacted)
        by_queue = grouped((job.queue, job.id) for job, _ in islice(found, self._options["limit"]))
        parts = (Selection(queues=[queue], states=sweep.states, ids=ids) for queue, ids in by_queue.items())
        return list(map(self._sweep, parts))

    def _sweep(self, selection: Selection) -> Sweep:
        terminates = bool(self._options.get("terminate"))
        try:
            return Sweep(verb=self._verb, selection=selection, target=self._target, terminates=terminates)
        except QueryError as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from None

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
            job = in_named_queue(self._readers.find(job_id, self._options["queue"]), self._options)
        except JobError as error:
            return one_line(error)
        if answer == "left" and job.state is not JobState.DEAD:
            return one_line(WrongState(job_id, f"is not a dead letter: it is {job.state}, in queue {job.queue}."))
        if answer == "left":
            why = "it has died just now, or it is unique and another job of the same key is alive"
            return f"Job {job_id} is still dead: {why}."
        return one_line(JobNotFound(job_id))

    def _report(self, sweep: Sweep, result: Result, failed: Mapping[str, str]) -> None:
        """Say what was done. Raises CommandError if it was stopped."""
        options, write = self._options, self._command.stdout.write
        before = [job_id for job_id, word in result.answers.items() if word == ACTIONS[self._verb].done_before]
        told = [*result.done, *before] if options["ids"] else result.done
        if options["json"]:
            answers = {job_id: result.answers.get(job_id, self._did).partition(" ")[0] for job_id in told}
            of_dead = {self._did: result.count, "ids": result.done}
            write(as_json(of_dead if self._is_of_dead else {"jobs": answers, "failed": failed}))
        elif options["verbosity"]:
            if options["verbosity"] > 1:
                write("".join(f"{one_line(job_id)}\n" for job_id in told), ending="")
            write(done_text(sweep, result))
        if not options["json"] or self._is_of_dead:
            for problem in failed.values() if options["ids"] or options["verbosity"] > 1 else ():
                self._command.stderr.write(problem)
        if self._target and result.count:
            with suppress(BrokerError):  # of a shard that is away: it is done
                for text in waiting_texts(self._readers, self._target):
                    self._command.stderr.write(text)
        check_stopped(sweep, result)

    def _report_dry_run(self, counted: Count) -> None:
        if self._options["json"]:
            self._command.stdout.write(as_json({"dry_run": True, "jobs": counted.count, "queues": counted.by_queue}))
            return
        where = ", ".join(f"{one_line(queue)} {number(jobs)}" for queue, jobs in counted.by_queue.items())
        would = f"Would {self._options['action']} {count(counted.count, self._noun)}"
        self._command.stdout.write(f"{would}{where and f' ({where})'}. Nothing was changed.")

    # -- another queue in which they are requeued

    def _check_target(self) -> None:
        ids, places = self._options["ids"], self._readers.places
        if ids and self._readers.is_of_all_shards:
            places = list(dict.fromkeys(place_of_job("", job_id) for job_id in ids))
        try:
            check_target(self._target, places)
        except ValueError as error:
            raise CommandError(one_line(error)) from error


@override("en")
def ask_and_act(
    command: ConsoleCommand,
    options: dict[str, Any],
    sweep: Sweep,
    parts: Sequence[Sweep] | None = None,
    *,
    limit: int = STEP,
) -> tuple[Count, Result]:
    """Count the jobs, ask if it is to be done with so many, and do it, unless with --dry-run; of some only, these are
    `parts`. Jobs that die, or are made, later are left out. Raises CommandError for another answer.
    """
    words, sweeps = words_of(sweep), command.readers.sweeps
    asks = not words.is_harmless and options["interactive"] and not options["dry_run"]
    if asks:
        check_interactive()
    if parts is None:
        counted = sweeps.count(sweep, most=sys.maxsize, shown=redacted)
        parts = [replace(sweep, selection=replace(sweep.selection, until_ms=counted.until_ms))]
    else:
        counted = Count(by_queue={part.selection.queues[0]: len(part.selection.ids) for part in parts})
    if options["dry_run"]:
        return counted, Result()
    if asks and (counted.count or counted.workflows):
        expected, typed = "yes", "'yes'"
        if sweep.verb == "purge":
            expected, typed = sweep.selection.queues[0], "the name of the queue"
        elif sweep.verb == "erase":
            expected, typed = sweep.selection.client or "", "the name of the client"
        which = one_line(sweep.selection)
        asked = f"{which}{which and ': '}{question(sweep, counted)} {words.consequence}"
        confirm(command.stderr, f"{asked} Type {typed} to continue:", expected=expected)
    steps = chain.from_iterable(sweeps.steps(part, limit=limit, shown=redacted) for part in parts)
    with ProgressLine(command.stderr, "Done", counted.count, shown=options["verbosity"] > 0) as progress:
        return counted, run_steps(steps, show=progress.show)


def check_stopped(sweep: Sweep, result: Result) -> None:
    """Raises CommandError if it was stopped, with what was done before."""
    if result.stopped_by is None:
        return
    interrupted = isinstance(result.stopped_by, KeyboardInterrupt)
    reason = "Stopped." if interrupted else one_line(result.stopped_by)
    text = f"{reason} {done_text(sweep, result)} Run this again for the rest."
    raise CommandError(text, returncode=INTERRUPTED if interrupted else 1) from result.stopped_by


def clear(command: ConsoleCommand, options: dict[str, Any], sweeps: Mapping[str, Sweep]) -> dict[str, int]:
    """Purge queues or clients, or erase clients, each after a question, and say what was done. Returns how many jobs
    and workflows that were, by name; with --dry-run, how many jobs. Raises CommandError.
    """
    cleared: dict[str, int] = {}
    for name, sweep in sweeps.items():
        counted, result = ask_and_act(command, options, sweep)
        check_stopped(sweep, result)
        cleared[name] = counted.count if options["dry_run"] else result.count + result.workflows
        if options["verbosity"] and not options["json"]:
            would = f"Would {sweep.verb} {count(counted.count, 'job')}."
            with override("en"):
                done = done_text(sweep, result)
            command.stdout.write(f"{one_line(sweep.selection)}: {would if options['dry_run'] else done}")
    return cleared
