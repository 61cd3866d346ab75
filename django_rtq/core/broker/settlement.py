"""The outcomes that a worker still has to send to one queue. They are sent together with the next claim."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.redis.commands import Argument, Command
from django_rtq.core.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.core.jobs.job import is_member

if TYPE_CHECKING:
    from django_rtq.core.conf.config import Config

LOGS_AT_ONCE = 100  # jobs with lines in one call
WORKFLOWS_AT_ONCE = 32  # most workflows whose members one call settles
#: Of the ids of members: the same in those of a workflow, but for one digit.
WORKFLOW_PART: Callable[[Any], Any] = itemgetter(slice(12, 26))
MAX_METRICS_CALLS = 10  # kept while Redis is unreachable
UNKNOWN_CLIENT = "\n"  # in place of the client of a job to retry: the script reads it from the record
_ACK_WIDTH = 3  # arguments of one job in `ack`


class Verb(NamedTuple):
    """How Redis is told what became of jobs."""

    width: int  # arguments of one job
    state: str = ""  # in which the script `finish` leaves them; "": the verb has a script of its own
    is_outcome: bool = True  # of a run


#: In the order in which they are sent: `note_times` before the others.
VERBS = {
    "note_times": Verb(2, is_outcome=False),
    "ack": Verb(_ACK_WIDTH, "succeeded"),
    "ack_members": Verb(_ACK_WIDTH),
    "expire": Verb(3, "expired"),
    "finish_cancel": Verb(3, "cancelled"),
    "retry": Verb(5),
    "bury": Verb(3),
    "suspend": Verb(3),
    "release": Verb(1, is_outcome=False),
}
_OUTCOMES = [verb for verb, how in VERBS.items() if how.is_outcome]
_outcomes_in = attrgetter(*_OUTCOMES)
_OTHERS = (b"8", "8")  # the version of ids of members, and of ids that name a shard


class Report(NamedTuple):
    """What became of a run: for Redis, and for the supervisor if the process is killed before Redis has it."""

    verb: str  # ack, retry, bury, suspend, expire or finish_cancel
    ms: int  # how long to keep the outcome, the delay of a retry, or how long it sleeps or waits
    text: bytes  # the stored outcome, the line of the failure, or what it waits for
    is_counted: bool = True  # of a failure: as an attempt


@dataclass(slots=True)
class Settlement:
    """Outcomes by verb, each a flat list of arguments in the order of the script's header.

    Flat, because a busy worker settles hundreds of jobs in one call, and the list is sent as it is. Only the methods
    that add to the lists know that order.
    """

    #: What jobs have logged: parts, as append_log takes them. Not kept here if they cannot be sent.
    logs: list[Sequence[Argument]] = field(default_factory=list)
    note_times: list[Argument] = field(default_factory=list)  # of queues whose clients take turns by time
    ack: list[Argument] = field(default_factory=list)
    ack_members: list[Argument] = field(default_factory=list)  # of workflows, which have to know it
    expire: list[Argument] = field(default_factory=list)
    finish_cancel: list[Argument] = field(default_factory=list)
    retry: list[Argument] = field(default_factory=list)
    bury: list[Argument] = field(default_factory=list)
    suspend: list[Argument] = field(default_factory=list)  # of jobs that go on later
    release: list[Argument] = field(default_factory=list)
    metrics: list[Sequence[Argument]] = field(default_factory=list)  # the arguments of whole calls

    def __bool__(self) -> bool:
        return self.has_outcomes or bool(self.release or self.metrics or self.logs)

    @property
    def has_outcomes(self) -> bool:
        """Whether it holds outcomes of runs."""
        return any(_outcomes_in(self))

    def add_ack(self, job_id: Argument, keep_ms: int, outcome: bytes) -> None:
        """add() for a success: most jobs end so."""
        # A call for each job would cost more.
        if job_id[12:13] in _OTHERS and is_member(job_id):  # type: ignore[index,arg-type]
            self.ack_members += (job_id, keep_ms, outcome)
        else:
            self.ack += (job_id, keep_ms, outcome)

    def add(self, report: Report, job_id: Argument, client: Argument = UNKNOWN_CLIENT) -> None:
        """Add what became of the run of a job."""
        verb, ms, text, is_counted = report
        if verb == "retry":
            self.retry += (job_id, ms, int(is_counted), text, client)
        elif verb == "bury":
            self.bury += (job_id, int(is_counted), text)
        elif verb == "ack":
            self.add_ack(job_id, ms, text)
        else:
            getattr(self, verb).extend((job_id, ms, text))

    def add_time(self, job_id: Argument, seconds: float) -> None:
        """Add how long a job ran, for a queue whose clients take turns by time."""
        self.note_times += (job_id, f"{seconds * 1000:.3f}")

    def any_outcome_id(self) -> bytes:
        """The id of a job whose outcome is in there; b"" if there is none."""
        return next((_as_bytes(entries[0]) for entries in _outcomes_in(self) if entries), b"")

    def job_ids(self) -> set[bytes]:
        """The ids of all jobs in it."""
        return {job_id for verb in VERBS for job_id in self.ids_of(verb)}

    def ids_of(self, verb: str) -> list[bytes]:
        """The ids of those of one verb."""
        return [_as_bytes(job_id) for job_id in getattr(self, verb)[:: VERBS[verb].width]]

    def commands(
        self, keys: QueueKeys, home: QueueKeys, worker: str, *, max_results: int, logs_ms: int, but: str = ""
    ) -> Iterator[tuple[str, Command]]:
        """Verb and command of each script call that is needed, but for one verb that travels with a claim.

        `home` has the workflows.
        """
        for start in range(0, len(self.logs), LOGS_AT_ONCE):  # first: who lost a job cannot add lines to it
            parts = chain.from_iterable(self.logs[start : start + LOGS_AT_ONCE])
            yield "logs", SCRIPTS["append_log"].call(keys, (logs_ms, max_results, *parts), worker=worker)
        for verb, (width, state, _) in VERBS.items():
            entries: list[Argument] = [] if verb == but else getattr(self, verb)
            for part in _of_few_workflows(entries) if verb == "ack_members" else _parts(entries, width):
                if verb == "ack_members":
                    call = SCRIPTS["finish_members"].call_many
                    yield verb, call([keys, home], (max_results, *part), worker=worker)
                elif state:
                    yield verb, SCRIPTS["finish"].call(keys, (max_results, state, *part), worker=worker)
                else:
                    yield verb, SCRIPTS[verb].call(keys, part, worker=worker)
        for arguments in self.metrics:
            yield "metrics", SCRIPTS["add_metrics"].call(keys, arguments)

    def clear(self, verb: str) -> None:
        """Remove the outcomes of one verb, which Redis has stored."""
        getattr(self, verb).clear()

    def joined(self, later: Settlement) -> Settlement:
        """These outcomes followed by later ones."""
        joined = {verb: getattr(self, verb) + getattr(later, verb) for verb in VERBS}
        return Settlement(**joined, metrics=[*self.metrics, *later.metrics][-MAX_METRICS_CALLS:])


def _parts(entries: Sequence[Argument], width: int) -> Iterator[Sequence[Argument]]:
    """The parts of entries of so many arguments that one call each takes."""
    for start in range(0, len(entries), AT_ONCE * width):
        yield entries[start : start + AT_ONCE * width]


def _of_few_workflows(entries: Sequence[Argument]) -> Iterator[Sequence[Argument]]:
    """The same of `ack_members`. Most often there is one part, or none."""
    start = 0
    while start < len(entries):
        part = entries[start : start + AT_ONCE * _ACK_WIDTH]
        names = list(map(WORKFLOW_PART, part[::_ACK_WIDTH]))
        workflows = list(dict.fromkeys(names))
        if len(workflows) > WORKFLOWS_AT_ONCE:
            part = part[: names.index(workflows[WORKFLOWS_AT_ONCE]) * _ACK_WIDTH]
        yield part
        start += len(part)


def _as_bytes(job_id: Argument) -> bytes:
    return job_id if isinstance(job_id, bytes) else str(job_id).encode()


def take_acks(settlements: Mapping[str, Settlement]) -> dict[str, Sequence[Argument]]:
    """The acknowledgements that one call of the script `claim` takes, by queue. They stay in the settlements."""
    acked: dict[str, Sequence[Argument]] = {}
    room = AT_ONCE * _ACK_WIDTH
    for queue, settlement in settlements.items():
        if 0 < len(settlement.ack) <= room:
            room -= len(settlement.ack)
            acked[queue] = settlement.ack
    return acked


def settlement_calls(
    settlements: Mapping[str, Settlement],
    keys: Keys,
    worker: str,
    config: Config,
    *,
    but: Container[str] = (),
) -> list[tuple[tuple[Settlement, str], Command]]:
    """The calls that send all of these settlements, each with its settlement and verb.

    Without the acknowledgements of the queues in `but`, which travel with a claim.
    """
    home, numbers = keys.of(config.default_queue), {"max_results": config.max_results, "logs_ms": config.dead_letter_ms}
    return [
        ((settlement, verb), command)
        for queue, settlement in settlements.items()
        for verb, command in settlement.commands(
            keys.of(queue), home, worker, **numbers, but="ack" if queue in but else ""
        )
    ]
