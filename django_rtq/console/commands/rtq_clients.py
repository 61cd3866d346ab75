"""manage.py rtq_clients: show the limits of a queue and its clients, change them; pause, resume and purge clients."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.commands.command import AFTER, CLIENT, EVERY_QUEUE, LIMIT, NO_INPUT, Action, SheetCommand
from django_rtq.console.commands.job_actions import clear
from django_rtq.console.commands.prompts import client_argument, known_queues, positive
from django_rtq.console.nouns import Place
from django_rtq.console.output import as_json, count, number
from django_rtq.console.reading.clients import SORTS
from django_rtq.console.reading.details import holds_text
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.sweep import Sweep
from django_rtq.console.subjects.clients import OF_QUEUE, limit_lines
from django_rtq.core.commands.command import WRONG_USAGE, Argument, Options, one_line
from django_rtq.core.conf.queue_options import CLIENT_LIMITS, QUEUE_LIMITS
from django_rtq.limits.limit_kinds import LIMIT_KINDS, limits_text
from django_rtq.scale.placement import share_of_queue

MOST_LISTED = 100  # clients, unless --limit says otherwise
LIMIT_HELP = {
    "max_running": "How many jobs may run at once.",
    "max_waiting": "How many jobs may wait.",
    "rate": 'How many jobs may start in a time, like "100/s", or with m, h or d.',
    "burst": "How many of the jobs of --rate may start at once.",
    "weight": "How many starts a client gets where one of weight 1 gets one: a number from 0.01 to 1,000;",
    "fair_by": "What clients of the queue get equal shares of: 'jobs', or 'seconds' of the workers;",
}
NOT_GIVEN = object()


def _limit_type(name: str) -> Callable[[str], Any]:
    """The type of an argument: argparse prints what this says, and exits with 2."""

    def parse(text: str) -> Any:
        try:
            return LIMIT_KINDS[name].parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def _limit_argument(name: str) -> Argument:
    none = " 'none' for no limit;" if LIMIT_KINDS[name].may_be_none else ""
    return Argument(
        f"--{name.replace('_', '-')}",
        type=_limit_type(name),
        default=NOT_GIVEN,
        metavar={"rate": "N/s", "fair_by": "WHAT"}.get(name, "N"),
        help=f"{LIMIT_HELP[name]}{none} 'settings' for what RTQ[\"QUEUES\"] says.",
    )


QUEUE = Argument("queue", metavar="QUEUE", help="The queue.")
CLIENTS = Argument(
    "clients", nargs="+", type=client_argument, metavar="CLIENT", help="The client; '' is the one without a name."
)
LIST_ARGUMENTS = [
    QUEUE,
    Argument(
        "--sort",
        choices=SORTS,
        default="queued",
        help="Sort by this column: names from A, others from the greatest. The default is 'queued'.",
    ),
    Argument("--reverse", action="store_true", help="Sort the other way round."),
    Argument("--search", default="", metavar="TEXT", help="Only clients whose names contain this text, in any case."),
    LIMIT.but(default=MOST_LISTED, help=f"List so many clients. The default is {MOST_LISTED}."),
    AFTER.but(type=positive, default=0),
]
LIMIT_ARGUMENTS = [
    QUEUE,
    *map(_limit_argument, LIMIT_HELP),
    CLIENT.but(action="append", default=[], metavar="NAME", help="Of this client. May be repeated."),
    Argument("--each-client", action="store_true", help="Of each client without a limit of its own."),
    Argument("--whole-queue", action="store_true", help="Of all clients together."),
]


class Command(SheetCommand):
    help = "Show and change limits of a queue and its clients, and pause, resume, purge and erase clients."
    exit_codes = (
        "Exit codes: 0 done; 1 the queue is unknown, not confirmed, or Redis did not answer; 64 wrong usage. "
        "A change holds for all workers from their next claim on, and survives restarts."
    )
    actions = {
        "list": Action(
            "Show the limits of a queue and its clients, why clients wait, and their parts of what ran in the last 10 "
            "minutes, beside their fair share by weight.",
            LIST_ARGUMENTS,
            reads_only=True,
        ),
        "limit": Action(
            "Set how many jobs of the queue or of clients may run at once, start in a time, or wait, and weights of "
            "clients.",
            LIMIT_ARGUMENTS,
        ),
        "pause": Action(
            "Start no more jobs of clients. What they enqueue waits, and their running jobs finish.",
            [EVERY_QUEUE, CLIENTS],
        ),
        "resume": Action("Start the jobs of paused clients again.", [EVERY_QUEUE, CLIENTS]),
        "purge": Action(
            "Delete all queued, scheduled and retrying jobs of clients. Running jobs and dead letters stay.",
            [QUEUE, CLIENTS, NO_INPUT],
        ),
        "erase": Action(
            "Delete all that is kept of clients in all queues: waiting jobs, dead letters, outcomes, logs, steps and "
            "workflows. Running jobs and limits stay.",
            [CLIENTS, NO_INPUT],
        ),
    }

    def do_list(self, options: Options) -> None:
        (queue,) = known_queues(self.readers, [options["queue"]])
        self._print_clients(queue, options)

    def do_limit(self, options: Options) -> None:
        (queue,) = known_queues(self.readers, [options["queue"]])
        setters = _limit_setters(self.rtq, queue, options)
        values = {name: options[name] for name in LIMIT_KINDS if options[name] is not NOT_GIVEN}
        try:
            if options["whole_queue"] and self.readers.is_of_all_shards:
                share_of_queue(queue, values, "")  # checks it
            limits_text(QUEUE_LIMITS if options["whole_queue"] else CLIENT_LIMITS, values)  # checks them all first
            for change in () if options["dry_run"] else setters.values():
                change(**values)
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from None
        if options["dry_run"]:
            shown = {name: _shown(name, value) for name, value in values.items()}
            what = ", ".join(f"{name} {text}" for name, text in shown.items())
            would = one_line(f"Would set {what} for {', '.join(setters)} of queue {queue}.")
            self.report(options, {"queue": queue, "limits": shown}, [would])
        elif options["json"] or self.verbosity:
            self._print_clients(queue, options)

    def do_pause(self, options: Options) -> None:
        def where(shard: Readers, client: str, queue: str | None) -> list[str]:
            found = shard.clients.get(client, queue and [queue])
            return [each.queue for each in found if ACTIONS[f"{options['action']}_client"].applies(each)]

        self.switch_in_queues(options, "client", options["clients"], where)

    do_resume = do_pause

    def do_purge(self, options: Options) -> None:
        (queue,) = known_queues(self.readers, [options["queue"]])
        wanted = {client: Selection(queues=[queue], client=client) for client in options["clients"]}
        sweeps = {client: Sweep(verb="purge", selection=selection) for client, selection in wanted.items()}
        self.report(options, {"queue": queue, "purged": clear(self, options, sweeps)}, ())

    def do_erase(self, options: Options) -> None:
        try:
            sweeps = {name: Sweep(verb="erase", selection=Selection(client=name)) for name in options["clients"]}
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from None
        self.report(options, {"erased": clear(self, options, sweeps)}, ())

    @override("en")
    def _print_clients(self, queue: str, options: Options) -> None:
        readers = self.readers
        matching = readers.clients.count([queue]).matching(
            sort=options.get("sort", "queued"),
            is_reversed=options.get("reverse", False),
            search=options.get("search", ""),
        )
        start = options.get("after", 0)
        end = start + options.get("limit", MOST_LISTED)
        listed = [name.decode(errors="replace") for name in matching[start:end]]
        names = dict.fromkeys([*options.get("client", ()), *listed])
        state, clients = readers.clients.in_queue(queue, names)
        if options["json"]:
            rows = [OF_QUEUE.as_dict(client, of_shards=readers.is_of_all_shards) for client in clients]
            behind = str(end) if end < len(matching) else None
            answer = {**asdict(state), "matching": len(matching), "clients": rows, "next": behind}
            self.stdout.write(as_json(answer))
            return
        for whose, limits, why in (
            ("Whole queue", state.limits, holds_text(state.holds)),
            ("Each client", state.default, ""),
        ):
            if lines := [*limit_lines(limits, limits), *filter(None, [why])]:
                self.stdout.write(one_line(f"{whose}: {'; '.join(lines)}"))
        if_none = "No client matches." if options.get("search") else "No client has jobs."
        self.print_sheet(options, OF_QUEUE, clients, if_none=if_none)
        if len(matching) > len(listed):
            number_of = f"{number(len(listed))} of {count(len(matching), 'client')}"
            self.stdout.write(f"Listed: {number_of}. Find others with --search, --sort or --limit.")


def _limit_setters(place: Place, queue: str, options: Options) -> dict[str, Callable[..., None]]:
    """Whose limits the options name -> what sets them. Raises CommandError."""
    clients = options["client"]
    if bool(clients) + options["each_client"] + options["whole_queue"] != 1:
        raise CommandError("Whose limit? Give --client NAME, --each-client or --whole-queue.", returncode=WRONG_USAGE)
    if options["each_client"]:
        return {"each client": place.queues[queue].limit_clients}
    if options["whole_queue"]:
        return {"all clients": place.queues[queue].limit}
    return {f"client {name!r}": partial(place.clients[name].limit, queue) for name in clients}


def _shown(name: str, value: Any) -> str:
    """A limit as people write it."""
    if value is None or value == "settings":
        return value or "none"
    return str(LIMIT_KINDS[name].decode(LIMIT_KINDS[name].text(value).partition("=")[2]))
