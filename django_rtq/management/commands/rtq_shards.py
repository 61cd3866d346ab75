"""manage.py rtq_shards: show the shards, make a change of RTQ["SHARDS"] known, and empty a shard that is closed."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.core.management.base import CommandError

from django_rtq.broker.brokers import open_broker
from django_rtq.broker.sharded import ShardBroker, open_shards
from django_rtq.broker.task_backends import check_shards, shard_numbers, shard_place
from django_rtq.exceptions import BrokerError, BrokerRefused
from django_rtq.inspector.carrying import REASONS, Carrier
from django_rtq.management.command import WRONG_USAGE, Action, ActionCommand, Argument, Options
from django_rtq.management.output import Column, ProgressLine, count, one_line


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
    help = 'Show the shards in RTQ["SHARDS"], make a change of them known to Redis, or empty a shard that is closed.'
    exit_codes = (
        "Exit codes: 0 done; 1 there are no shards, one did not answer or has another number, or jobs are left; "
        "64 wrong usage."
    )
    backend_help = ""
    in_each_shard = takes_shard = False
    actions = {
        "list": Action("Show all shards, where they are, and whether they answer.", reads_only=True),
        "apply": Action('Store the numbers in RTQ["SHARDS"] in each shard, after some were added or taken out.'),
        "drain": Action(
            "Carry the jobs and outcomes of a closed shard to the open ones. It may be interrupted and called again.",
            [
                Argument(
                    "number", metavar="NUMBER", type=int, help='The number of the shard, "closed" in RTQ["SHARDS"].'
                )
            ],
        ),
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
            broker.check_stored()
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
        known = {int(number) for _, numbers in stored for number in numbers.split(",") if number}
        taken_out = sorted(known - set(shard_numbers()))
        stored_in = f"{did} the numbers of all shards in {_shards(changed)}."
        texts = [stored_in if changed else "All shards know all numbers already."]
        if taken_out:
            texts.append(
                f'Not in RTQ["SHARDS"] any more: {_shards(taken_out)}. Jobs that are still there are not run. If this '
                "is a mistake, add it again, and call this again."
            )
        self.report(options, {"changed": changed, "taken_out": taken_out}, texts)

    def do_drain(self, options: Options) -> None:
        shard: int = options["number"]
        if shard not in shard_numbers():
            raise CommandError(f'There is no shard {shard} in RTQ["SHARDS"].', returncode=WRONG_USAGE)
        if shard in open_shards():
            raise CommandError(
                f"Shard {shard} gets new jobs. First mark it as closed, in the settings of all processes: "
                f'RTQ["SHARDS"][{shard}] = {{"redis": …, "closed": True}}.',
                returncode=WRONG_USAGE,
            )
        for broker in _brokers():
            broker.redis.run(broker.check_shard())
        carrier = Carrier(shard)
        if pauses := carrier.pauses():
            raise CommandError(
                f"Paused in shard {shard}, and not in all open shards, where its jobs would run: {', '.join(pauses)}. "
                "Pause it in all shards, or resume it."
            )
        if options["dry_run"]:
            jobs, outcomes = carrier.count()
            what = f"{count(jobs, 'job')} and {count(outcomes, 'outcome')} of shard {shard}"
            facts = {"shard": shard, "jobs": jobs, "outcomes": outcomes}
            self.report(options, facts, [f"Would carry {what}, but not jobs that run."])
            return
        with ProgressLine(self.stderr, "Carried", shown=self.verbosity > 0) as line:
            carried = carrier.run(line.show)
        texts = [f"Carried {count(carried.jobs, 'job')} and {count(carried.outcomes, 'outcome')} of shard {shard}."]
        texts += [f"{left:,} {REASONS[reason]}." for reason, left in carried.left.items()]
        done = {"shard": shard, "jobs": carried.jobs, "outcomes": carried.outcomes, "left": dict(carried.left)}
        self.report(options, done, texts)
        if not carried.is_complete:
            raise CommandError(f"Shard {shard} is not empty.")


def _shards(numbers: list[int]) -> str:
    return f"shard{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _brokers() -> list[ShardBroker]:
    brokers = [open_broker(shard_place(number), role="command") for number in shard_numbers()]
    return [broker for broker in brokers if isinstance(broker, ShardBroker)]
