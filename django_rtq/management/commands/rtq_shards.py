"""manage.py rtq_shards: show the shards, and make a change of RTQ["SHARDS"] known."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.core.management.base import CommandError

from django_rtq.broker.brokers import open_broker
from django_rtq.broker.sharded import ShardBroker, open_shards
from django_rtq.broker.task_backends import check_shards, shard_numbers, shard_place
from django_rtq.exceptions import BrokerError, BrokerRefused
from django_rtq.management.command import Action, ActionCommand, Options
from django_rtq.management.output import Column, one_line


class _Row(NamedTuple):
    number: int
    place: str
    takes: str  # new jobs
    state: str


COLUMNS = [
    Column("SHARD", lambda row: row.number, right=True),
    Column("REDIS", lambda row: row.place),
    Column("NEW JOBS", lambda row: row.takes),
    Column("STATE", lambda row: row.state),
]


class Command(ActionCommand):
    help = 'Show the shards in RTQ["SHARDS"], or make a change of them known to Redis.'
    exit_codes = (
        "Exit codes: 0 done; 1 there are no shards, or one did not answer or has another number; 2 wrong usage."
    )
    backend_help = ""
    in_each_shard = takes_shard = False
    actions = {
        "list": Action("Show all shards, where they are, and whether they answer.", reads_only=True),
        "apply": Action('Store the numbers in RTQ["SHARDS"] in each shard, after some were added or taken out.'),
    }

    def handle(self, *args: Any, **options: Any) -> None:
        if not shard_numbers():
            raise CommandError('There are no shards: RTQ["SHARDS"] is not set.')
        check_shards()
        super().handle(*args, **options)

    def do_list(self, options: Options) -> None:
        rows = [self._row(broker) for broker in _brokers()]
        self.print_list(options, COLUMNS, rows, _Row._asdict)
        if any(row.state != "ok" for row in rows):
            raise CommandError("Not all shards can be used.")

    def _row(self, broker: ShardBroker) -> _Row:
        try:
            broker.redis.run(broker.check_shard())
            state = "ok"
        except BrokerError as error:
            state = one_line(error)
        takes = "yes" if broker.shard in open_shards() else "no: closed"
        return _Row(broker.shard, str(broker.connection_settings), takes, state)

    def do_apply(self, options: Options) -> None:
        brokers = _brokers()
        stored = [broker.stored_stamp() for broker in brokers]  # all first: nothing is changed unless all answer
        for broker, (number, _) in zip(brokers, stored, strict=True):
            if number not in ("", str(broker.shard)):
                raise BrokerRefused(
                    f'{broker.connection_settings} is shard {number}, and RTQ["SHARDS"] says that it is shard '
                    f"{broker.shard}. Its number is for ever: correct the setting."
                )
        changed = [
            broker.shard for broker, stamp in zip(brokers, stored, strict=True) if " ".join(stamp) != broker.stamp
        ]
        if not options["dry_run"]:
            for broker in brokers:
                broker.store_stamp()
        did = "Would store" if options["dry_run"] else "Stored"
        numbers = ", ".join(map(str, changed))
        text = (
            f"{did} the numbers of all shards in shard {numbers}."
            if changed
            else "All shards know all numbers already."
        )
        self.report(options, {"changed": changed}, [text])


def _brokers() -> list[ShardBroker]:
    brokers = [open_broker(shard_place(number), role="command") for number in shard_numbers()]
    return [broker for broker in brokers if isinstance(broker, ShardBroker)]
