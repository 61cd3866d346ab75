"""manage.py rtq_clients: show the limits of a queue and its clients, change them; pause, resume and purge clients."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import override

from django_rtq.conf.queue_options import LIMIT_KINDS
from django_rtq.inspector.clients.client_list import SORTS
from django_rtq.inspector.clients.client_states import ClientInQueue, QueueState
from django_rtq.inspector.clients.holds import holds_text
from django_rtq.inspector.clients.limits import Limit, Limits
from django_rtq.inspector.inspector import get_inspector
from django_rtq.management.command import WRONG_USAGE, RTQCommand, add_actions
from django_rtq.management.output import Column, as_json, count, number, one_line, table
from django_rtq.management.prompts import client_argument, known_queues, positive, system_user
from django_rtq.management.purging import add_no_input, purge, purge_options

COLUMNS = [
    *(Column("CLIENT"), Column("QUEUED", right=True), Column("RUNNING", right=True), Column("MAX", right=True)),
    *(Column("MAX WAITING", right=True), Column("RATE", right=True), Column("WEIGHT", right=True)),
    *(Column("STARTS", right=True), Column("TIME", right=True), Column("FAIR", right=True), Column("STATE")),
]
MOST_LISTED = 100  # clients, unless --limit says otherwise

ACTIONS = {
    "list": "Show the limits of a queue and its clients, why clients wait, and their parts of what ran in the last 10 "
    "minutes, beside their fair share by weight.",
    "limit": "Set how many jobs of the queue or of clients may run at once, start in a time, or wait, and weights of "
    "clients.",
    "pause": "Start no more jobs of clients. What they enqueue waits, and their running jobs finish.",
    "resume": "Start the jobs of paused clients again.",
    "purge": "Delete all queued, scheduled and retrying jobs of clients. Running jobs and dead letters stay.",
}
LIMIT_HELP = {
    "max_running": "How many jobs may run at once.",
    "max_waiting": "How many jobs may wait.",
    "rate": 'How many jobs may start in a time, like "100/s", or with m, h or d.',
    "burst": "How many of the jobs of --rate may start at once.",
    "weight": "How many starts a client gets where one of weight 1 gets one: a number from 0.01 to 1,000;",
    "fair_by": "What clients of the queue get equal shares of: 'jobs', or 'seconds' of the workers;",
}
NOT_GIVEN = object()
EVERY_QUEUE = "The queue; '*' is every queue that was used."


class Command(RTQCommand):
    help = (
        "Show how many jobs a queue and its clients may run at once, change that, and pause, resume and purge clients."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 the queue is unknown, not confirmed, or Redis did not answer; 2 wrong usage. "
            "A change holds for all workers from their next claim on, and survives restarts."
        )
        for name, action in add_actions(parser, ACTIONS):
            action.add_argument(
                "queue", metavar="QUEUE", help=EVERY_QUEUE if name in ("pause", "resume") else "The queue."
            )
            if name == "list":
                action.add_argument("--json", action="store_true", help="Print JSON.")
                self._add_list_arguments(action)
            elif name == "limit":
                self._add_limit_arguments(action)
            else:
                action.add_argument(
                    "clients",
                    nargs="+",
                    type=client_argument,
                    metavar="CLIENT",
                    help="The client; '' is the one without a name.",
                )
            if name == "purge":
                add_no_input(action)

    @staticmethod
    def _add_list_arguments(action: ArgumentParser) -> None:
        action.add_argument(
            "--sort",
            choices=SORTS,
            default="queued",
            help="Sort by this column: names from A, others from the greatest. The default is 'queued'.",
        )
        action.add_argument("--reverse", action="store_true", help="Sort the other way round.")
        action.add_argument(
            "--search", default="", metavar="TEXT", help="Only clients whose names contain this text, in any case."
        )
        action.add_argument(
            "--limit",
            type=positive,
            default=MOST_LISTED,
            metavar="N",
            help=f"List so many clients. The default is {MOST_LISTED}.",
        )

    def _add_limit_arguments(self, action: ArgumentParser) -> None:
        for name, meaning in LIMIT_HELP.items():
            none = " 'none' for no limit;" if LIMIT_KINDS[name].may_be_none else ""
            action.add_argument(
                f"--{name.replace('_', '-')}",
                type=_limit_argument(name),
                default=NOT_GIVEN,
                metavar={"rate": "N/s", "fair_by": "WHAT"}.get(name, "N"),
                help=f"{meaning}{none} 'settings' for what RTQ[\"QUEUES\"] says.",
            )
        action.add_argument(
            "--client",
            action="append",
            type=client_argument,
            default=[],
            metavar="NAME",
            help="Of this client. May be repeated.",
        )
        action.add_argument("--each-client", action="store_true", help="Of each client without a limit of its own.")
        action.add_argument("--whole-queue", action="store_true", help="Of all clients together.")

    def handle(self, *args: Any, **options: Any) -> None:
        queue, action = options["queue"], options["action"]
        if queue == "*" and action in ("pause", "resume"):
            queues = get_inspector().queues.names()
        else:
            queues = known_queues(get_inspector(), [queue])
        act = {"limit": self._limit, "list": self._list, "purge": self._purge}.get(action, self._pause_or_resume)
        for name in queues:
            act(name, options)

    def _pause_or_resume(self, queue: str, options: dict[str, Any]) -> None:
        limits = get_inspector().limits
        for client in options["clients"]:
            what = f"client {one_line(repr(client), 100)} in queue {queue}"
            if options["action"] == "resume":
                text = (
                    f"Resumed {what}."
                    if limits.resume_client(queue, client)
                    else f"{_capitalized(what)} was not paused."
                )
            elif limits.pause_client(queue, client, system_user()):
                again = f"rtq_clients resume {queue} {shlex.quote(one_line(client))}"
                text = f"{_capitalized(what)} is paused. Resume it with  python manage.py {again}"
            else:
                text = f"{_capitalized(what)} was paused already."
            if options["verbosity"]:
                self.stdout.write(text)

    def _purge(self, queue: str, options: dict[str, Any]) -> None:
        for client in options["clients"]:
            (found,) = get_inspector().clients.get(client, [queue])
            waiting = found.queued + found.scheduled
            purged = purge(self.stderr, queue, client, waiting=waiting, **purge_options(options))
            what = f"client {one_line(repr(client), 100)} in queue {queue}"
            if options["verbosity"]:
                self.stdout.write(
                    f"Purged {count(purged, 'job')} of {what}."
                    if purged
                    else f"No job of {what} waits: nothing was deleted."
                )

    def _limit(self, queue: str, options: dict[str, Any]) -> None:
        clients, of_each, of_queue = options["client"], options["each_client"], options["whole_queue"]
        if bool(clients) + of_each + of_queue != 1:
            raise CommandError(
                "Whose limit? Give --client NAME, --each-client or --whole-queue.", returncode=WRONG_USAGE
            )
        values = {name: options[name] for name in LIMIT_KINDS if options[name] is not NOT_GIVEN}
        limits = get_inspector().limits
        try:
            for client in clients:
                limits.set_client(queue, client, **values)
            if of_each:
                limits.set_default(queue, **values)
            if of_queue:
                limits.set_queue(queue, **values)
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from None
        if options["verbosity"]:
            self._list(queue, options)

    @override("en")
    def _list(self, queue: str, options: dict[str, Any]) -> None:
        inspector = get_inspector()
        page = inspector.client_list.count([queue]).page(
            sort=options.get("sort", "queued"),
            is_reversed=options.get("reverse", False),
            search=options.get("search", ""),
            limit=options.get("limit", MOST_LISTED),
        )
        names = dict.fromkeys([*options.get("client", ()), *(each.client for each in page.clients)])
        state, clients = inspector.clients.in_queue(queue, names)
        if options.get("json"):
            found = {"matching": page.matching, "clients": list(map(_as_dict, clients))}
            self.stdout.write(as_json({**asdict(state), **found}))
            return
        heading, *rows = table(COLUMNS, _rows(state, clients))
        self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *rows]))
        if page.matching > len(page.clients):
            number_of = f"{number(len(page.clients))} of {count(page.matching, 'client')}"
            self.stdout.write(f"Listed: {number_of}. Find others with --search, --sort or --limit.")


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def _limit_argument(name: str) -> Callable[[str], Any]:
    """The type of an argument: argparse prints what this says, and exits with 2."""

    def parse(text: str) -> Any:
        try:
            return LIMIT_KINDS[name].parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return parse


def _rows(state: QueueState, clients: list[ClientInQueue]) -> list[list[str]]:
    is_counted = state.limits or any(client.running is not None for client in clients)
    running = number(state.running) if is_counted else "-"
    return [
        ["(whole queue)", "", running, *_limit_cells(state.limits), *[""] * 4, _queue_state(state)],
        ["(each client)", "", "", *_limit_cells(state.default), _weight(state.default), *[""] * 4],
        *(
            [
                *(_name(each), number(each.queued), "-" if each.running is None else number(each.running)),
                *(*_limit_cells(each.own), _weight(each.own)),
                *(_percent(share) for share in (each.shares.starts, each.shares.time, each.shares.fair)),
                one_line(each.reason, 120) or "open",
            ]
            for each in clients
        ),
    ]


def _as_dict(client: ClientInQueue) -> dict[str, Any]:
    """Without what all clients of the queue have in common."""
    found = {name: value for name, value in asdict(client).items() if name != "queue_state"}
    return {**found, "limits": found["own"], "reason": client.reason}


def _name(client: ClientInQueue) -> str:
    return one_line(client.client, 60) or "(none)"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _limit_cells(limits: Limits) -> list[str]:
    rate = _limit_text(limits.get("rate"))
    burst = f", burst {_limit_text(limits['burst'])}" if "burst" in limits else ""
    return [*(_limit_text(limits.get(name)) for name in ("max_running", "max_waiting")), rate + burst]


def _limit_text(limit: Limit | None) -> str:
    if limit is None:
        return "-"
    most = number(limit.value) if isinstance(limit.value, int) else limit.value or "none"
    return most + _source(limit)


def _queue_state(state: QueueState) -> str:
    limit = state.limits.get("fair_by")
    return ", ".join(filter(None, [f"fair by {_limit_text(limit)}" if limit else "", holds_text(state.holds)]))


def _weight(limits: Limits) -> str:
    limit = limits.get("weight")
    if limit is None:
        return ""
    return f"{limit.value:g}{_source(limit)}"


def _source(limit: Limit) -> str:
    if limit.is_from_function:
        return " (limits_of)"
    return " (settings)" if limit.is_from_settings else ""
