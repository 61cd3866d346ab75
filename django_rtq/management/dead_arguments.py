"""The options of rtq_dead and the checks of their combinations."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, _SubParsersAction
from typing import Any

from django.core.management.base import CommandError

from django_rtq.management.command import WRONG_USAGE
from django_rtq.management.prompts import job_id

ACTIONS = {
    "list": "Show dead letters, the newest first.",
    "requeue": "Queue dead letters again, with all their attempts. Needs ids, a filter, or --all.",
    "discard": "Delete dead letters permanently. Needs ids, a filter, or --all; asks for confirmation, except for ids.",
}
EXIT_CODES = (
    "Exit codes: 0 done, even if there was nothing to do; 1 an id is not a dead letter, not confirmed, unknown "
    "queue, or Redis did not answer (what was done before stays done); 2 wrong usage; 130 stopped with Ctrl-C."
)


def add_actions(actions: _SubParsersAction[Any]) -> None:
    """One sub-command for each action."""
    for name, text in ACTIONS.items():
        parser = actions.add_parser(name, help=text, description=text, epilog=EXIT_CODES)
        parser.add_argument("ids", nargs="*", type=job_id, metavar="ID", help="Ids of dead letters, of any queue.")
        parser.add_argument("--queue", metavar="QUEUE", help="Only those of this queue.")
        parser.add_argument("--task", metavar="TASK", help="Only those of this task: its full name, or the end of it.")
        parser.add_argument(
            "--error",
            metavar="ERROR",
            help="Only those whose newest failure has this class (its full name, or the end of it), "
            "or has this in its message.",
        )
        parser.add_argument("--limit", type=_limit, metavar="N", help=_LIMIT_HELP[name])
        parser.add_argument("--json", action="store_true", help=_JSON_HELP[name])
        parser.add_argument("--all", action="store_true", help="All dead letters, or all that match.")
        if name == "discard":
            parser.add_argument(
                "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask for confirmation."
            )
        _add_django_options(parser)


def is_filtered(options: dict[str, Any]) -> bool:
    """Whether the options select only some dead letters."""
    return any(options[name] is not None for name in ("queue", "task", "error"))


def check_selection(options: dict[str, Any]) -> None:
    """Raises CommandError, for wrong usage, if it is unclear which dead letters the options select."""
    for name in ("queue", "task", "error"):
        # An empty shell variable must not become "all of them".
        if options[name] == "":
            raise CommandError(f"--{name} is empty. Leave it out, or give a value.", returncode=WRONG_USAGE)
    if not options["ids"]:
        if options["action"] != "list" and not (options["all"] or is_filtered(options)):
            raise CommandError(
                f"Which dead letters? Give ids, or a filter (--queue, --task, --error), or --all to "
                f"{options['action']} every one of every queue.",
                returncode=WRONG_USAGE,
            )
        return
    for name in ("task", "error", "limit", "all"):
        if options[name]:
            raise CommandError(
                f"Give either ids or --{name}: together it is not clear which dead letters you mean.",
                returncode=WRONG_USAGE,
            )


_LIMIT_HELP = {
    "list": "The newest N (default: 50; no limit with --all and with --json).",
    "requeue": "The newest N of them, to try it with a few.",
    "discard": "The newest N of them.",
}
_JSON_HELP = {
    "list": "Print a JSON list, with arguments and tracebacks; secrets are hidden as in the admin.",
    "requeue": 'Print {"requeued": n, "ids": [...]}.',
    "discard": 'Print {"discarded": n, "ids": [...]}.',
}


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 on.")
    return int(text)


def _add_django_options(parser: ArgumentParser) -> None:
    """Accept Django's options after the action too, where most people write them.

    Without defaults, because those of a sub-parser would overwrite options before the action.
    """
    group = parser.add_argument_group("Django's options")
    group.add_argument("-v", "--verbosity", type=int, choices=range(4), default=SUPPRESS, help="0 silent, 2 more.")
    for name in ("--settings", "--pythonpath"):
        group.add_argument(name, default=SUPPRESS, help=SUPPRESS)
    for name in ("--traceback", "--no-color", "--force-color"):
        group.add_argument(name, action="store_true", default=SUPPRESS, help=SUPPRESS)
