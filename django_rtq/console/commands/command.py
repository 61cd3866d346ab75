"""The base classes of the commands of the console: in each shard, and their actions, tables and answers."""

from __future__ import annotations

import io
import json
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import override

from django_rtq.console.acting.verb import Said, Target, Verb
from django_rtq.console.commands.prompts import NotHere, client_argument, positive
from django_rtq.console.nouns import Place
from django_rtq.console.output import Column, as_json, count, number, table
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.json import as_dict
from django_rtq.console.render.sheet import Row, Sheet
from django_rtq.console.render.terminal import columns
from django_rtq.core.broker.task_backends import pinned_in, place_of_job, shard_of, shard_place
from django_rtq.core.commands.command import WRONG_USAGE, Argument, Options, RTQCommand, one_line
from django_rtq.exceptions import ConfigurationError, RTQError
from django_rtq.scale.placement import shard_of_client

NO_WORKER = "No worker is alive. Start one:  python manage.py rtq_worker"


class ConsoleCommand(RTQCommand):
    """A command that looks at jobs, or acts on them."""

    in_each_shard = True  # in RTQ["SHARDS"], or once for all

    @property
    def rtq(self) -> Place:
        """The place that it is about."""
        return Place(pinned_in(self.place))

    @property
    def readers(self) -> Readers:
        """Those of this place."""
        return self.rtq.readers

    def places(self, options: Options) -> list[str]:
        """Those of the jobs that are named, if any are."""
        ids = options.get("ids")
        if not ids or options.get("shard") is not None or options.get("backend"):
            return super().places(options)
        try:
            return list(dict.fromkeys(map(_place_of, ids)))
        except ConfigurationError:
            return [""]  # what is wrong is said, with an exit code, where the settings are needed

    def execute_in(self, places: Sequence[str], *args: Any, **options: Any) -> str | None:
        # With --json it does not depend on where things are whether the answer is one of shards.
        is_of_shards = options.get("json") and options.get("shard") is None and shard_of(places[0]) is not None
        try:
            if self.in_each_shard and (len(places) > 1 or is_of_shards):
                self._execute_in_each(places, *args, **options)
                return None
            return super().execute_in(places, *args, **options)
        except NotHere as error:  # Django prints the name of the class
            raise CommandError(str(error), returncode=error.returncode) from None

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
                self.execute_at(place, *args, **_for_shard(place, options, answers))
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
    queue = options.get("queue") or ""
    return [shard_place(shard_of_client(queue, client) or 0) for client in clients if client]


def _place_of(job_id: str) -> str:
    return place_of_job("", job_id)


JSON = Argument("--json", action="store_true", help="Print JSON.")
DRY_RUN = Argument("--dry-run", action="store_true", help="Change nothing, and say what would be done.")
NO_INPUT = Argument(
    "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask for confirmation."
)
QUEUE = Argument("--queue", metavar="QUEUE", help="Only those of this queue.")
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


class ActionCommand(ConsoleCommand):
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

    def report(self, options: Options, facts: Mapping[str, Any], sentences: Iterable[str]) -> None:
        """Say what was done, or would be with --dry-run: as JSON, or in sentences."""
        if options["json"]:
            self.stdout.write(as_json({**facts, "dry_run": True} if options["dry_run"] else facts))
        elif self.verbosity:
            for sentence in sentences:
                self.stdout.write(sentence)


class SheetCommand(ActionCommand):
    """A command about the rows of a sheet."""

    def print_sheet(self, options: Options, sheet: Sheet[Row], rows: Sequence[Row], *, if_none: str = "") -> None:
        """Print these rows as JSON, as a table, or a sentence if there are none."""
        with override("en"):
            if options["json"]:
                self.stdout.write(as_json([as_dict(sheet, row) for row in rows]))
            else:
                self.stdout.write(self.table_text(columns(sheet, rows), rows) if rows or not if_none else if_none)

    def run_each(
        self, options: Options, verb: Verb, noun: str, targets: Mapping[str, Target], would: Callable[[str], Any]
    ) -> dict[str, Said]:
        """What became of each, by name. `would`: what would become of it, with --dry-run."""
        said: dict[str, Said] = {}
        try:
            with override("en"):
                for name, target in targets.items():
                    found = verb.would(noun, target, would(name)) if options["dry_run"] else verb.run(self.rtq, target)
                    said[name] = found._replace(text=one_line(found.text))
        except RTQError:
            for each in said.values():  # what was done before an error is told, too
                self.stderr.write(each.text)
            raise
        return said

    def complain(self, options: Options, problems: Collection[str], total: int, noun: str, participle: str) -> None:
        """Raises CommandError if there are problems, after they have been told, unless JSON has them."""
        for problem in () if options["json"] else problems:
            self.stderr.write(problem)
        if problems:
            raise CommandError(f"{number(len(problems))} of {count(total, noun)} could not be {participle}.")


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
