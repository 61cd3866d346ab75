"""The base classes of the commands of the console: the place that they are about, actions, tables and answers."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from shutil import get_terminal_size
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import override

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.acting.verb import Said, Target
from django_rtq.console.commands.prompts import client_argument, known_queues, positive, system_user
from django_rtq.console.merging import joined
from django_rtq.console.nouns import Place
from django_rtq.console.output import as_json, count, number
from django_rtq.console.reading.readers import Readers, SilentShard
from django_rtq.console.render.column import Column
from django_rtq.console.render.sheet import Row, Sheet
from django_rtq.console.render.terminal import columns, table
from django_rtq.console.shards import AllShards
from django_rtq.core.broker.task_backends import shard_numbers
from django_rtq.core.commands.command import Argument, Options, RTQCommand, one_line
from django_rtq.exceptions import RTQError

NO_WORKER = "No worker is alive. Start one:  python manage.py rtq_worker"


class ConsoleCommand(RTQCommand):
    """A command that looks at jobs, or acts on them: in one Redis, or in all shards together."""

    #: Actions that do without shards that do not answer; None: of a command without actions. These shards are named in
    #: the end, and the exit code is 1.
    goes_on: ClassVar[Collection[str | None]] = (None, "list", "show")
    is_strict = True
    silent: dict[int, SilentShard]

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._options, self.silent = options, {}
        self.is_strict = options.get("action") not in self.goes_on
        try:
            answer = super().execute(*args, **options)
        finally:
            is_incomplete = self.told_silent()
        if is_incomplete:
            sys.exit(1)
        return answer

    def told_silent(self) -> bool:
        """Name the shards that did not answer, once. Returns whether there were some."""
        told = [f"shard {shard.number}: {one_line(shard.error)}" for shard in self.silent.values()]
        for text in told:
            self.stderr.write(text)
        self.silent.clear()
        return bool(told)

    def none(self, text: str) -> str:
        """This sentence, that there is nothing; while a shard is silent that holds for the others only."""
        return "There is nothing in the other shards." if self.silent else text

    @property
    def name(self) -> str:
        """That of the place that it is about. Raises UnknownPlace."""
        return self.named_place(self._options)

    @property
    def rtq(self) -> Place:
        """The place that it is about."""
        if self.name or self.is_strict or not shard_numbers():
            return Place(self.name)
        readers = AllShards(is_patient=True)
        readers.silent = self.silent
        return Place(readers=readers)

    @property
    def readers(self) -> Readers:
        """Those of this place."""
        return self.rtq.readers

    def table_text(self, columns: Sequence[Column], items: Iterable[Any]) -> str:
        """A table with a line for each item, as wide as the terminal; with -v 2, and elsewhere, it is not cut."""
        width = get_terminal_size().columns if self.stdout.isatty() and self.verbosity < 2 else None
        heading, *lines = table(columns, items, width, in_full=self.verbosity > 1)
        return "\n".join([self.style.MIGRATE_HEADING(heading), *lines])


JSON = Argument("--json", action="store_true", help="Print JSON.")
DRY_RUN = Argument("--dry-run", action="store_true", help="Change nothing, and say what would be done.")
NO_INPUT = Argument(
    "--no-input", "--noinput", action="store_false", dest="interactive", help="Do not ask for confirmation."
)
QUEUE = Argument("--queue", metavar="QUEUE", help="Only those of this queue.")
CLIENT = Argument("--client", type=client_argument, metavar="CLIENT")
LIMIT = Argument("--limit", type=positive, metavar="N")
AFTER = Argument("--after", metavar="CURSOR", help='Go on behind an earlier list: "next" of its JSON.')
ALL = Argument("--all", action="store_true")
EVERY_QUEUE = Argument("queue", metavar="QUEUE", help="The queue; '*' is every queue that was used.")


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a command: a sub-command, with arguments of its own."""

    help: str
    arguments: Sequence[Argument] = ()
    reads_only: bool = False  # or else it accepts --dry-run
    json: str = "Print JSON."  # the help of --json


class SheetCommand(ConsoleCommand):
    """A command with actions, each done by the method `do_` with its name. All print JSON with --json. Its lists are
    sheets."""

    actions: ClassVar[Mapping[str, Action]]
    exit_codes: ClassVar[str]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = self.exit_codes
        JSON.add_to(parser)
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
        for name, action in self.actions.items():
            sub_parser = actions.add_parser(name, help=action.help, description=action.help, epilog=self.exit_codes)
            # Without a default, which would overwrite an option before the action.
            JSON.but(help=action.json, default=SUPPRESS).add_to(sub_parser)
            for argument in (*action.arguments, *(() if action.reads_only else (DRY_RUN,))):
                argument.add_to(sub_parser)
            _accept_django_options(sub_parser)

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, f"do_{options['action']}")(options)

    def report(self, options: Options, facts: Mapping[str, Any], sentences: Iterable[str]) -> None:
        """Say what was done, or would be with --dry-run: as JSON, or in sentences."""
        if options["json"]:
            self.stdout.write(as_json({**facts, "dry_run": True} if options["dry_run"] else facts))
        elif self.verbosity:
            for sentence in sentences:
                self.stdout.write(sentence)

    def print_sheet(self, options: Options, sheet: Sheet[Row], rows: Iterable[Row], *, if_none: str = "") -> None:
        """Print these rows as JSON, as a table, or a sentence if there are none."""
        of_shards = self.readers.is_of_all_shards
        with override("en"):
            if options["json"]:
                self.print_json(sheet.as_dict(row, of_shards=of_shards) for row in rows)
            elif (shown := list(rows)) or not if_none:
                self.stdout.write(self.table_text(columns(sheet, shown, of_shards=of_shards), shown))
            else:
                self.stdout.write(self.none(if_none))

    def print_part(
        self,
        options: Options,
        sheet: Sheet[Row],
        rows: Iterable[tuple[Row, Callable[[], str]]],
        limit: int | None,
        *,
        if_none: str,
    ) -> None:
        """Print the first of these rows, each with what says the cursor behind it; as JSON an object with `next`."""
        left, of_shards = iter(rows), self.readers.is_of_all_shards
        behind: list[Callable[[], str]] = [str]  # the last row that was printed

        def items() -> Iterator[Mapping[str, Any]]:
            for row, behind[0] in islice(left, limit):
                yield sheet.as_dict(row, of_shards=of_shards)

        def end() -> str:
            cursor = behind[0]()  # before the next row is read
            return f', "next": {as_json(None if next(left, None) is None else cursor)}}}'

        if options["json"]:
            with override("en"):
                self.print_json(items(), f'{{"{sheet.model}s": ', end)
            return
        self.print_sheet(options, sheet, [row for row, _ in islice(left, limit)], if_none=if_none)
        if limit and next(left, None) is not None:
            see = "--limit and --all" if "all" in options else "--limit"
            self.stdout.write(f"\nOnly the first {number(limit)} are shown: see {see}.")

    def print_json(
        self, items: Iterable[Mapping[str, Any]], before: str = "", behind: Callable[[], str] = lambda: ""
    ) -> None:
        """Print a list as JSON, one by one: a hundred thousand jobs with their tracebacks may not fit into memory."""
        separator = f"{before}["
        for item in items:
            self.stdout.write(f"{separator}\n{as_json(item)}", ending="")
            separator = ","
        self.stdout.write(("\n]" if separator == "," else f"{separator}]") + behind())

    def run_each(
        self, options: Options, noun: str, targets: Mapping[str, Target], would: Callable[[str], Any]
    ) -> dict[str, Said]:
        """What became of each, by name. `would`: what would become of it, with --dry-run."""
        said, verb = dict[str, Said](), ACTIONS[f"{options['action']}_{noun}"]
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

    def switch_in_queues(
        self,
        options: Options,
        noun: str,
        names: Iterable[str],
        where: Callable[[Readers, str, str | None], Iterable[str]],
    ) -> None:
        """Pause or resume some in a queue, or in all. `where`: the queues of a shard in which it would change one."""
        readers, done = self.readers, f"{options['action']}d"
        queue = None if options["queue"] == "*" else known_queues(readers, [options["queue"]])[0]

        def would(name: str) -> list[str]:
            return sorted({*joined(readers.in_each_shard(lambda shard: where(shard, name, queue)))})

        said = self.run_each(options, noun, {name: Target(name, queue, by=system_user()) for name in names}, would)
        changed = {name: each.answer or [] for name, each in said.items()}
        self.report(options, {done: changed}, [each.text for each in said.values() if each.how != "refused"])
        self.complain(options, [each.problem for each in said.values() if each.problem], len(said), noun, done)

    def complain(self, options: Options, problems: Collection[str], total: int, noun: str, participle: str) -> None:
        """Raises CommandError if there are problems, after they have been told, unless JSON has them."""
        for problem in () if options["json"] else problems:
            self.stderr.write(problem)
        if problems:
            raise CommandError(f"{number(len(problems))} of {count(total, noun)} could not be {participle}.")


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
