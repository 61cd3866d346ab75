"""The base classes of the commands: how they exit when something is wrong, and their actions, tables and answers."""

from __future__ import annotations

import io
import json
import os
import sys
from argparse import SUPPRESS, ArgumentParser, _ActionsContainer
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any, ClassVar, TypeAlias

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from django_rtq.core.broker.task_backends import (
    UnknownPlace,
    place_of,
    place_of_job,
    shard_of,
    shard_place,
    shard_places,
    view_backend,
)
from django_rtq.core.commands.output import Column, as_json, one_line, table
from django_rtq.core.commands.prompts import NotHere, client_argument, positive
from django_rtq.exceptions import ConfigurationError, RTQError

WRONG_USAGE = 64  # EX_USAGE; 2, as argparse does, is what rtq_check says of something critical
INTERRUPTED = 130  # as shells do: 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE

NO_WORKER = "No worker is alive. Start one:  python manage.py rtq_worker"

Options: TypeAlias = dict[str, Any]  # what argparse made of the command line


class RTQCommand(BaseCommand):
    """A command of django_rtq. Expected errors are printed as one sentence, without a traceback."""

    # These commands must work while the database or another app does not.
    requires_system_checks = []
    #: The help of --backend ("": no such option), and whether get_inspector() is for the backend while it runs.
    backend_help = 'Look at the Redis of this backend in TASKS, if it has its own. Default: RTQ["REDIS"].'
    views_backend = True
    #: Whether it runs once for each shard in RTQ["SHARDS"], or once for all, and whether it may be told to take one.
    in_each_shard = True
    takes_shard = True
    verbosity = 1
    _is_parsed = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        if not self.backend_help:
            return parser
        for argument in (BACKEND.but(help=self.backend_help), *((SHARD,) if self.takes_shard else ())):
            argument.add_to(parser)
            for sub_parser in _sub_parsers(parser):  # after the action too; without a default that would overwrite it
                argument.but(default=SUPPRESS, help=SUPPRESS).add_to(sub_parser)
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from the command line. Ctrl-C and a closed pipe (`| head`) print no traceback."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The name of a client may have characters that this terminal cannot encode.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            super().run_from_argv(argv)
            sys.stdout.flush()
        except SystemExit as end:
            sys.exit(WRONG_USAGE if end.code and not self._is_parsed else end.code)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # Or else Python tries to flush the rest at exit, and prints an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(PIPE_CLOSED)

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._is_parsed, self.verbosity = True, options.get("verbosity", 1)
        try:
            if not self.views_backend:
                return self._execute(*args, **options)
            places = self.places(options)
            # With --json it does not depend on where things are whether the answer is one of shards.
            is_of_shards = options.get("json") and options.get("shard") is None and shard_of(places[0]) is not None
            if self.in_each_shard and (len(places) > 1 or is_of_shards):
                self._execute_in_each(places, *args, **options)
                return None
            with view_backend(places[0]):
                return self._execute(*args, **options)
        except NotHere as error:  # Django prints the name of the class
            raise CommandError(str(error), returncode=error.returncode) from None
        except RTQError as error:
            raise CommandError(one_line(error)) from error

    def _execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except RTQError as error:
            raise CommandError(one_line(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database did not answer: {one_line(error)}") from error

    def places(self, options: Options) -> list[str]:
        """What it is about: the Redis of a backend, one shard, those of the jobs that are named, or all shards."""
        backend, shard = options.get("backend", ""), options.get("shard")
        if shard is not None and backend:
            raise CommandError(
                'Give either a shard or --backend: shards are of RTQ["SHARDS"], and a backend has a Redis of its own.',
                returncode=WRONG_USAGE,
            )
        if shard is not None or backend:
            return [named_place(backend if shard is None else f"#{shard}")]
        try:
            ids = options.get("ids")
            return list(dict.fromkeys(map(_place_of, ids))) if ids else shard_places()
        except ConfigurationError:
            return [""]  # what is wrong is said, with an exit code, where the settings are needed

    def _execute_in_each(self, places: Sequence[str], *args: Any, **options: Any) -> None:
        """Run for each shard. One that fails does not keep the others from it.

        The exit code is the worst of all; of those of the clients that are named, if any are. What is in one shard only
        need not be in the others.
        """
        if options.get("watch") is not None:
            text = f"There are {len(places)} shards, and --watch is about one of them: choose it with --shard."
            raise CommandError(text, returncode=WRONG_USAGE)
        out, answers = options.get("stdout") or self.stdout, dict[int, io.StringIO]()
        missing, codes, of_clients = list[NotHere](), [0], _places_of_clients(options)
        for place in places:
            name = f"shard {shard_of(place)}"
            if self.verbosity and not options.get("json"):
                out.write(f"{name}:\n")
            try:
                with view_backend(place):
                    self._execute(*args, **_for_shard(place, options, answers))
            except NotHere as error:
                missing.append(error)
            except CommandError as error:
                (options.get("stderr") or self.stderr).write(f"{name}: {error}\n")
                codes += [error.returncode] if place in (of_clients or [place]) else []
            except SystemExit as end:
                codes.append(end.code if isinstance(end.code, int) else 1)
        if len(missing) == len(places):
            raise missing[0]
        if said := [(shard, json.loads(text)) for shard, answer in answers.items() if (text := answer.getvalue())]:
            out.write(as_json(self.merged(said)) + "\n")
        if worst := max(codes):
            sys.exit(worst)

    def merged(self, answers: Sequence[tuple[int, Any]]) -> Any:
        """One answer of those of the shards: all items, or an item for each shard. Each has the number of its shard."""
        return [
            {"shard": shard, **item}
            for shard, answer in answers
            for item in (answer if isinstance(answer, list) else [answer])
        ]

    def table_width(self) -> int | None:
        """How wide tables may be. None: they are not cut, because this is no terminal, or -v 2 asks for all."""
        return get_terminal_size().columns if self.stdout.isatty() and self.verbosity < 2 else None

    def table_text(self, columns: Sequence[Column], items: Iterable[Any]) -> str:
        """A table with a line for each item."""
        heading, *lines = table(columns, items, self.table_width())
        return "\n".join([self.style.MIGRATE_HEADING(heading), *lines])


def named_place(name: str) -> str:
    """The place of a backend or a shard that somebody has named. Raises CommandError if there is none."""
    try:
        return place_of(name)
    except UnknownPlace as error:
        raise CommandError(one_line(error), returncode=WRONG_USAGE) from error


def _for_shard(place: str, options: Options, answers: dict[int, io.StringIO]) -> Options:
    """The options of a command in one of several shards: the ids that are there, and where its JSON goes."""
    own: Options = {}
    if options.get("json"):
        own["stdout"] = answers[shard_of(place) or 0] = io.StringIO()
    if options.get("ids"):
        own["ids"] = [job_id for job_id in options["ids"] if _place_of(job_id) == place]
    return {**options, **own}


def _places_of_clients(options: Options) -> list[str]:
    """The shards of the clients that are named; none: it is about all clients."""
    named = options.get("clients") or options.get("client")
    clients = [named] if isinstance(named, str) else named
    if not clients:
        return []
    from django_rtq.scale.sharded import all_shards, shard_for_job  # rtq_worker has no such option

    queue, numbers = options.get("queue") or "", all_shards()
    return [shard_place(shard_for_job(queue, client, "", "", numbers)) for client in clients if client]


def _place_of(job_id: str) -> str:
    return place_of_job("", job_id)


class Argument:
    """An argument of an action, as add_argument() of argparse takes it."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.names, self.options = names, options

    def but(self, **options: Any) -> Argument:
        """The same with other options, such as another help."""
        return Argument(*self.names, **{**self.options, **options})

    def add_to(self, parser: _ActionsContainer) -> None:
        """Let the parser accept it."""
        parser.add_argument(*self.names, **self.options)


# What several commands accept, each with a help of its own where this one does not fit.
BACKEND = Argument("--backend", default="", metavar="ALIAS")
SHARD = Argument("--shard", type=int, metavar="NUMBER", help='Only this shard in RTQ["SHARDS"]. Default: all.')
JSON = Argument("--json", action="store_true", help="Print JSON.")
DRY_RUN = Argument("--dry-run", action="store_true", help="Change nothing, and say what would be done.")
NO_INPUT = Argument(
    "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask for confirmation."
)
QUEUE = Argument("--queue", metavar="QUEUE", help="Only those of this queue.")
QUEUES = Argument("--queues", metavar="A,B")
CLIENT = Argument("--client", type=client_argument, metavar="CLIENT")
LIMIT = Argument("--limit", type=positive, metavar="N")
ALL = Argument("--all", action="store_true")
EVERY_QUEUE = Argument("queue", metavar="QUEUE", help="The queue; '*' is every queue that was used.")


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a command: a sub-command, with arguments of its own."""

    help: str
    arguments: Sequence[Argument] = ()
    reads_only: bool = False  # or else it accepts --dry-run


class ActionCommand(RTQCommand):
    """A command with actions, each done by the method `do_` with its name. All print JSON with --json."""

    actions: ClassVar[Mapping[str, Action]]
    exit_codes: ClassVar[str]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = self.exit_codes
        texts = {name: action.help for name, action in self.actions.items()}
        for name, sub_parser in add_actions(parser, texts, epilog=self.exit_codes, all_print_json=True):
            action = self.actions[name]
            for argument in (*action.arguments, *(() if action.reads_only else (DRY_RUN,))):
                argument.add_to(sub_parser)

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, f"do_{options['action']}")(options)

    def print_list(
        self,
        options: Options,
        columns: Sequence[Column],
        items: Sequence[Any],
        as_dict: Callable[[Any], Any],
        *,
        if_none: str = "",
    ) -> None:
        """Print the items as JSON, as a table, or a sentence if there are none."""
        if options["json"]:
            self.stdout.write(as_json(list(map(as_dict, items))))
        else:
            self.stdout.write(self.table_text(columns, items) if items or not if_none else if_none)

    def report(self, options: Options, facts: Mapping[str, Any], sentences: Iterable[str]) -> None:
        """Say what was done, or would be with --dry-run: as JSON, or in sentences."""
        if options["json"]:
            self.stdout.write(as_json({**facts, "dry_run": True} if options["dry_run"] else facts))
        elif self.verbosity:
            for sentence in sentences:
                self.stdout.write(sentence)


def _sub_parsers(parser: ArgumentParser) -> list[ArgumentParser]:
    return [each for action in parser._actions if isinstance(action.choices, dict) for each in action.choices.values()]


def switched(options: Options, what: str, where: str = "", *, is_changed: bool, resume: str) -> str:
    """A sentence about what was paused or resumed, or would be. `resume`: the command that resumes it."""
    action, capitalized = options["action"], what[0].upper() + what[1:]
    if is_changed and options["dry_run"]:
        return f"Would {action} {what}{where}."
    if action == "resume":
        return f"Resumed {what}{where}." if is_changed else f"{capitalized} was not paused{where}."
    if is_changed:
        return f"{capitalized} is paused{where}. Resume it with  python manage.py {resume}"
    return f"{capitalized} was paused already{where}."


def add_actions(
    parser: ArgumentParser, texts: Mapping[str, str], *, epilog: str | None = None, all_print_json: bool = False
) -> Iterator[tuple[str, ArgumentParser]]:
    """Add a sub-command for each action. Yields its name and its parser, which accepts Django's options as well.

    With `all_print_json`, each accepts --json, and so does the command before the action.
    """
    if all_print_json:
        JSON.add_to(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    for name, text in texts.items():
        action = actions.add_parser(name, help=text, description=text, epilog=epilog)
        if all_print_json:  # without a default, which would overwrite an option before the action
            JSON.but(default=SUPPRESS).add_to(action)
        yield name, action
        _accept_django_options(action)


def _accept_django_options(parser: ArgumentParser) -> None:
    """Accept Django's options after the action too, where most people write them.

    Without defaults, because those of a sub-parser would overwrite options before the action.
    """
    group = parser.add_argument_group("Django's options")
    group.add_argument("-v", "--verbosity", type=int, choices=range(4), default=SUPPRESS, help="0 silent, 2 more.")
    for name in ("--settings", "--pythonpath"):
        group.add_argument(name, default=SUPPRESS, help=SUPPRESS)
    for name in ("--traceback", "--no-color", "--force-color"):
        group.add_argument(name, action="store_true", default=SUPPRESS, help=SUPPRESS)
