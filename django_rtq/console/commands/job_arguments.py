"""The options of rtq_jobs and the checks of their combinations."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from django_rtq.console.commands.command import AFTER, ALL, CLIENT, DRY_RUN, JSON, LIMIT, NO_INPUT, QUEUE, add_actions
from django_rtq.console.commands.prompts import job_id, past_time, utf8_text
from django_rtq.console.reading.actions import ACTIONS, Verb
from django_rtq.console.reading.jobs.job_page import LISTS
from django_rtq.core.commands.command import WRONG_USAGE

_HELP = {
    "list": "Show jobs: the running ones first, and dead letters with the newest first. Finished jobs only with "
    "--state finished.",
    "show": "Show all that is known of some jobs: arguments, times, failed runs, the result.",
    "cancel": "Cancel queued, scheduled and retrying jobs, and ask running jobs to stop. Needs ids, a filter, or "
    "--all; asks for confirmation, except for ids. Filters select running jobs only with --state running.",
    "requeue": "Queue dead letters again, with all their attempts. Needs ids, a filter, or --all.",
    "discard": "Delete dead letters permanently. Needs ids, a filter, or --all; asks for confirmation, except for ids.",
    "run": "Queue scheduled and retrying jobs now. Needs ids, a filter, or --all.",
    "send": "Give a job an event for which it waits, now or later.",
}
EXIT_CODES = (
    "Exit codes: 0 done, even if there was nothing to do; 1 an id is unknown or its job is not in a state for this, "
    "not confirmed, unknown queue, or Redis did not answer (what was done before stays done); 64 wrong usage; 130 "
    "stopped with Ctrl-C."
)
#: What each action is called in the table of actions.
VERBS: dict[str, Verb] = {
    "requeue": "requeue",
    "discard": "discard",
    "cancel": "cancel",
    "run": "run_now",
}
LISTED_STATES = ("running", "retrying", "queued", "scheduled", "dead")  # unless --state names others
FILTERS = ("queue", "task", "client", "state", "error", "since", "query")


def add_job_arguments(command: ArgumentParser) -> None:
    """One sub-command for each action."""
    for name, parser in add_actions(command, _HELP, epilog=EXIT_CODES):
        JSON.but(help=_JSON_HELP[name]).add_to(parser)
        if name == "send":
            parser.add_argument("ids", nargs=1, type=job_id, metavar="ID", help="The id of the job, in any queue.")
            parser.add_argument("event", type=utf8_text, metavar="EVENT", help="The name of the event.")
            parser.add_argument("value", nargs="?", default="null", type=utf8_text, metavar="JSON", help="Its value.")
            QUEUE.add_to(parser)
            continue
        nargs = "+" if name == "show" else "*"
        parser.add_argument("ids", nargs=nargs, type=job_id, metavar="ID", help="Ids of jobs, of any queue.")
        QUEUE.add_to(parser)
        if name != "show":
            _add_filters(parser, name)
        if name not in ("list", "show"):
            _add_ways(parser, name)
        if name == "cancel":
            parser.add_argument(
                "--terminate",
                action="store_true",
                help="Kill the process of a running job, if it does not stop when asked. Other jobs of that process "
                "are queued again.",
            )
        if name == "requeue":
            parser.add_argument("--to", metavar="QUEUE", help="Another queue of the settings, where they go.")


def _add_ways(parser: ArgumentParser, name: str) -> None:
    """How it is done."""
    action = ACTIONS[VERBS[name]]
    DRY_RUN.but(help="Say how many jobs would be meant in which queues, and change nothing.").add_to(parser)
    if action.asks:
        NO_INPUT.add_to(parser)


def _add_filters(parser: ArgumentParser, name: str) -> None:
    add = parser.add_argument
    add("--task", type=utf8_text, metavar="TASK", help="Only those of this task: its full name, or the end of it.")
    CLIENT.but(help="Only those of this client; '' for jobs without one.").add_to(parser)
    default, allowed = _states(name)
    if len(allowed) > 1:
        add(
            "--state",
            metavar="A,B",
            type=_states_of(allowed),
            help=f"Only those in these states, of {', '.join(allowed)} (default: {', '.join(default)}).",
        )
    add(
        "--error",
        metavar="ERROR",
        type=utf8_text,
        help="Only those whose newest failure has this class (its full name, or the end of it), "
        "or has this in its message.",
    )
    add(
        "--since",
        metavar="WHEN",
        type=past_time,
        help="Only those that died, finished, are due, or else became ready since then: 90s, 30min, 2h, 7d ago, or a "
        "time such as 2026-01-31T08:00.",
    )
    add(
        "--query",
        metavar="QUERY",
        type=utf8_text,
        help="Only those that the search of the admin finds, such as 'state:dead task:ship since:1h'; "
        "without other filters.",
    )
    LIMIT.but(help=_LIMIT_HELP[name]).add_to(parser)
    if name == "list":
        AFTER.but(default="").add_to(parser)
    ALL.but(help="All jobs, or all that match.").add_to(parser)


def is_filtered(options: dict[str, Any]) -> bool:
    """Whether the options select only some jobs."""
    return any(options.get(name) is not None for name in FILTERS)


def check_selection(options: dict[str, Any]) -> None:
    """Raises CommandError, for wrong usage, if it is unclear which jobs the options select."""
    problem = _wrong_filter(options) or (_wrong_beside_ids if options["ids"] else _wrong_without_ids)(options)
    if problem:
        raise CommandError(problem, returncode=WRONG_USAGE)


def _wrong_filter(options: dict[str, Any]) -> str:
    for name in _given(options, ("queue", "task", "error", "query", "to")):
        # An empty shell variable must not become "all of them".
        if not options[name].strip():
            return f"--{name} is empty. Leave it out, or give a value."
    others = _given(options, FILTERS[:-1]) if options.get("query") is not None else []
    return f"Give either --query or --{others[0]}, not both." if others else ""


def _wrong_beside_ids(options: dict[str, Any]) -> str:
    for name in (*FILTERS[1:], "limit", "after", "all", "dry_run"):
        if options.get(name) not in (None, False, ""):
            option = name.replace("_", "-")
            return f"Give either ids or --{option}: together it is not clear which jobs you mean."
    return ""


def _wrong_without_ids(options: dict[str, Any]) -> str:
    if options["action"] == "list" or options["all"] or is_filtered(options):
        return ""
    filters = ", ".join(f"--{name}" for name in FILTERS if name in options)
    return f"Which jobs? Give ids, or a filter ({filters}), or --all to {options['action']} every one of every queue."


def _states(name: str) -> tuple[Sequence[str], Sequence[str]]:
    """The states in which filters select for an action: by default, and at all."""
    if name == "list":
        return LISTED_STATES, LISTS
    action = ACTIONS[VERBS[name]]
    return action.usual_states, action.states


def _given(options: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [name for name in names if options.get(name) is not None]


_LIMIT_HELP = {
    "list": "The first N (default: 50; no limit with --all and with --json).",
    "requeue": "The newest N of them, to try it with a few.",
    "discard": "The newest N of them.",
    "cancel": "The first N of them, as list shows them.",
    "run": "The first N of them, as list shows them.",
}
_JSON_HELP = {
    "list": 'Print {"jobs": [...], "next": cursor for --after, or null}, with arguments and tracebacks; secrets are '
    "hidden as in the admin.",
    "show": "Print a JSON list, with all failures; secrets are hidden as in the admin.",
    "cancel": 'Print {"jobs": {id: "cancelled" or "asked"}, "failed": {id: why}}.',
    "requeue": 'Print {"requeued": n, "ids": [...]}.',
    "discard": 'Print {"discarded": n, "ids": [...]}.',
    "run": 'Print {"jobs": {id: "queued"}, "failed": {id: why}}.',
    "send": 'Print {"sent": id}.',
}


def _states_of(allowed: Sequence[str]) -> Any:
    """The type of an argument that is a list of these states, with commas."""

    def states(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not names or not set(names) <= set(allowed):
            raise ArgumentTypeError(f"{text!r} is not one or more of {', '.join(allowed)}.")
        return names

    return states
