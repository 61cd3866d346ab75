"""The outcomes that a worker still has to send to one queue. They are sent together with the next claim."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter
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
_ACK_WIDTH = 3  # arguments of one job in `ack`
_OTHERS = (b"8", "8")  # the version of ids of members, and of ids that name a shard
# Verbs that no script but their own takes: of jobs of workflows, which have to know it; and before the run of a job
# ends, where clients take turns by time.
ACK_MEMBER, NOTE_TIME = "ack_member", "note_time"
_NO_OUTCOMES = (NOTE_TIME, "release")


class Report(NamedTuple):
    """What became of a job that a worker holds: a row of the script `settle`."""

    verb: str
    job_id: Argument
    ms: int = 0  # how long to keep the outcome, the delay of a retry, or how long it sleeps or waits
    text: bytes = b""  # the stored outcome, the line of the failure, what it waits for, or how long it ran
    counted: int = 1  # failures: 0 if it could not be tried here
    attempt: int = 0  # of the run, which a supervisor has to know: not sent; 0: any


@dataclass(slots=True)
class Settlement:
    """What a worker reports of the jobs of a queue."""

    #: What jobs have logged: parts, as append_log takes them. Not kept here if they cannot be sent.
    logs: list[Sequence[Argument]] = field(default_factory=list)
    #: Successes, a flat list of id, ms and outcome: a busy worker sends hundreds with a claim, and the list as it is.
    ack: list[Argument] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    metrics: list[Sequence[Argument]] = field(default_factory=list)  # the arguments of whole calls

    def __bool__(self) -> bool:
        return bool(self.ack or self.reports or self.metrics or self.logs)

    def add_ack(self, job_id: Argument, keep_ms: int, outcome: bytes) -> None:
        """add() for a success: most jobs end so."""
        # A call for each job would cost more.
        if job_id[12:13] in _OTHERS and is_member(job_id):  # type: ignore[index,arg-type]
            self.reports.append(Report(ACK_MEMBER, job_id, keep_ms, outcome))
        else:
            self.ack += (job_id, keep_ms, outcome)

    def add(self, report: Report) -> None:
        """Add what became of the run of a job."""
        if report.verb == "ack":
            self.add_ack(report.job_id, report.ms, report.text)
        else:
            self.reports.append(report)

    def add_time(self, job_id: Argument, seconds: float) -> None:
        """Add how long a job ran, for a queue whose clients take turns by time."""
        self.reports.append(Report(NOTE_TIME, job_id, text=b"%.3f" % (seconds * 1000)))

    def any_outcome_id(self) -> bytes:
        """The id of a job whose outcome is in there; b"" if there is none."""
        ids = (report.job_id for report in self.reports if report.verb not in _NO_OUTCOMES)
        return as_bytes(next(chain(self.ack[:1], ids), b""))

    def job_ids(self) -> set[bytes]:
        """The ids of all jobs in it."""
        return {as_bytes(job_id) for job_id in chain(self.ack[::_ACK_WIDTH], (one.job_id for one in self.reports))}

    def commands(
        self, keys: QueueKeys, home: QueueKeys, worker: str, config: Config, *, with_acks: bool = True
    ) -> Iterator[tuple[Sequence[Any], Command]]:
        """What each call that is needed sends of `reports` and `metrics`, and its command.

        `home` has the workflows. Acknowledgements travel with a claim, or become reports.
        """
        for start in range(0, len(self.logs), LOGS_AT_ONCE):  # first: who lost a job cannot add lines to it
            parts = chain.from_iterable(self.logs[start : start + LOGS_AT_ONCE])
            yield (
                (),
                SCRIPTS["append_log"].call(keys, (config.dead_letter_ms, config.max_results, *parts), worker=worker),
            )
        if with_acks:
            acks = map(Report, repeat("ack"), *(self.ack[place::_ACK_WIDTH] for place in range(_ACK_WIDTH)))
            self.reports = [*acks, *self.reports]
            self.ack.clear()
        for part in _parts([report for report in self.reports if report.verb == NOTE_TIME]):
            times = chain.from_iterable((report.job_id, report.text) for report in part)
            yield part, SCRIPTS["note_times"].call(keys, times, worker=worker)
        for part in _of_few_workflows([report for report in self.reports if report.verb == ACK_MEMBER]):
            ends = chain.from_iterable(report[1:4] for report in part)
            yield part, SCRIPTS["finish_members"].call_many([keys, home], (config.max_results, *ends), worker=worker)
        for part in _parts([report for report in self.reports if report.verb not in (NOTE_TIME, ACK_MEMBER)]):
            rows = chain.from_iterable(report[:5] for report in part)
            yield part, SCRIPTS["settle"].call(keys, (config.max_results, *rows), worker=worker)
        for arguments in self.metrics:
            yield [arguments], SCRIPTS["add_metrics"].call(keys, (config.version or "", *arguments))

    def remove(self, sent: Sequence[Any]) -> None:
        """Remove reports or metrics, which Redis has stored."""
        gone = set(map(id, sent))
        self.reports = [report for report in self.reports if id(report) not in gone]
        self.metrics = [arguments for arguments in self.metrics if id(arguments) not in gone]

    def joined(self, later: Settlement) -> Settlement:
        """These outcomes followed by later ones."""
        metrics = [*self.metrics, *later.metrics][-MAX_METRICS_CALLS:]
        return Settlement(ack=self.ack + later.ack, reports=self.reports + later.reports, metrics=metrics)


def released(job_ids: Iterable[Argument]) -> Settlement:
    """Of jobs that are given back without having run, in the order in which they were claimed."""
    return Settlement(reports=[Report("release", job_id) for job_id in job_ids])


def _parts(reports: Sequence[Report]) -> Iterator[Sequence[Report]]:
    """The parts that one call each takes."""
    for start in range(0, len(reports), AT_ONCE):
        yield reports[start : start + AT_ONCE]


def _of_few_workflows(reports: Sequence[Report]) -> Iterator[Sequence[Report]]:
    """The same of members. Most often there is one part, or none."""
    start = 0
    while start < len(reports):
        part = reports[start : start + AT_ONCE]
        names = [WORKFLOW_PART(report.job_id) for report in part]
        workflows = list(dict.fromkeys(names))
        if len(workflows) > WORKFLOWS_AT_ONCE:
            part = part[: names.index(workflows[WORKFLOWS_AT_ONCE])]
        yield part
        start += len(part)


def as_bytes(job_id: Argument) -> bytes:
    """The id of a job."""
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
    settlements: Mapping[str, Settlement], keys: Keys, worker: str, config: Config, *, but: Container[str] = ()
) -> list[tuple[tuple[Settlement, Sequence[Any]], Command]]:
    """The calls that send all of these settlements, each with its settlement and what it sends of that.

    Without the acknowledgements of the queues in `but`, which travel with a claim.
    """
    home = keys.of(config.default_queue)
    return [
        ((settlement, sent), command)
        for queue, settlement in settlements.items()
        for sent, command in settlement.commands(keys.of(queue), home, worker, config, with_acks=queue not in but)
    ]
