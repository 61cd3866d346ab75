"""The actions of rtq_jobs with their options, the checks of their combinations, and which jobs they select."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.commands.command import AFTER, ALL, CLIENT, LIMIT, NO_INPUT, QUEUE, Action
from django_rtq.console.commands.prompts import job_id, known_queues, utf8_text
from django_rtq.console.reading.actions import ACTIONS, Verb
from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import LISTS, QueryError, Selection
from django_rtq.core.commands.command import WRONG_USAGE, Argument
from django_rtq.core.jobs.details import JobDetails
from django_rtq.exceptions import JobNotFound

#: What each action is called in the table of actions.
VERBS: dict[str, Verb] = {
    "requeue": "requeue",
    "discard": "discard",
    "cancel": "cancel",
    "run": "run_now",
}
LISTED_STATES = ("running", "retrying", "queued", "scheduled", "dead")  # unless --state names others
FILTERS = ("queue", "task", "client", "state", "error", "since", "query")

IDS = Argument("ids", nargs="*", type=job_id, metavar="ID", help="Ids of jobs, of any queue.")


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
