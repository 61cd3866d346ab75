"""What Redis replies to workers, with fields in the order of the scripts' replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from django_rtq.exceptions import BrokerError

if TYPE_CHECKING:
    from django_rtq.core.broker.settlement import Settlement


class Claimed(NamedTuple):
    """The jobs that a claim returned from one queue."""

    queue: str
    #: ok; unknown (sign on first); suspect (these have crashed a worker, or the next one has); more (it stopped after
    #: many cancelled jobs: claim again at once)
    status: str
    now_ms: int  # the server's time of the claim
    ids: list[bytes]
    records: list[bytes]
    counts: dict[int, tuple[int, int]]  # index in ids -> failures, crashes; only where there are any
    has_limits: bool = False  # a job counts for them from the claim on
    has_times: bool = False  # clients take turns by time: note_times has to say how long these jobs ran


@dataclass(slots=True, kw_only=True)
class ClaimResult:
    """The reply to WorkerBroker.claim(): claimed jobs, and which settled jobs were stale."""

    claimed: list[Claimed] = field(default_factory=list)  # queues that had jobs, or a status other than "ok"
    stale: list[str] = field(default_factory=list)  # settled, but no longer held by this worker
    error: BrokerError | None = None  # a command was refused; what was not settled is still in the settlements
    found: int = 0  # number of claimed jobs
    statuses: set[str] = field(default_factory=set)  # of these queues; "more" also if settled jobs let others start

    def add_settled(self, replies: Sequence[tuple[tuple[Settlement, Sequence[Any]], Any]]) -> None:
        """Add the reply to each call of a settlement, given as ((settlement, what was sent), reply). Removes what was
        settled."""
        for (settlement, sent), reply in replies:
            if not sent:
                continue  # logs: a full server refuses them, and that must not hold up outcomes
            if isinstance(reply, BrokerError):
                self.error = reply
            else:
                self.stale += [job_id.decode(errors="replace") for job_id in reply]
                settlement.remove(sent)

    def add_claim(self, queues: Sequence[str], reply: Any) -> None:
        """Add the reply of the script `claim`, or the error with which it was refused."""
        if isinstance(reply, BrokerError):
            self.error = reply
            return
        place = 1 + reply[0]
        self.stale += [job_id.decode() for job_id in reply[1:place]]
        while place < len(reply):
            number, status, now_ms, jobs, counts = reply[place : place + 5]
            start, end = place + 5, place + 5 + 2 * jobs
            place = end + counts
            tried = {reply[i]: (reply[i + 1], reply[i + 2]) for i in range(end, place, 3)} if counts else {}
            text, _, limits = status.decode().partition(" ")
            queue, ids, records = queues[number - 1], reply[start:end:2], reply[start + 1 : end : 2]
            self.claimed.append(Claimed(queue, text, now_ms, ids, records, tried, bool(limits), limits == "timed"))
            self.found += jobs
            self.statuses.add(text)


#: Of running jobs: worker and job id -> "ask" the job to stop, or "terminate" its process.
CancelRequests = Mapping[tuple[str, str], str]


class Renewed(NamedTuple):
    """What the script `renew` replies about a queue."""

    lease_ms: int  # until the earliest lease of any worker ends; -1: there is none, or it does not tend the queue
    unknown: list[bytes]  # workers whose leases have expired: they were not renewed, and their jobs are others' now
    asked: list[bytes]  # of each job of the caller's workers that was asked to stop: worker, id, how
    has_due: int  # 1: promote has something to do
    next_lane: int  # where repair_lanes has to go on; -1: not now


def read_renewed(replies: Iterable[Any]) -> list[Renewed]:
    """What calls of the script `renew` reply about each of their queues."""
    return [Renewed(*entry) for reply in replies for entry in reply]


def read_cancel_requests(renewed: Iterable[Renewed]) -> CancelRequests:
    """The cancel requests in replies of the script `renew`."""
    flat = [word.decode() for of_queue in renewed for word in of_queue.asked]
    return {(flat[i], flat[i + 1]): flat[i + 2] for i in range(0, len(flat), 3)}


def earliest_seconds(replies: Iterable[Sequence[Any]]) -> float | None:
    """The least of the milliseconds that begin each reply, in seconds. -1 stands for never."""
    return min((reply[0] / 1000 for reply in replies if reply[0] >= 0), default=None)


def promoted_ids(reply: Sequence[Any]) -> list[str]:
    """The ids in a reply of the script `promote`."""
    return [job_id.decode() for job_id in reply[1:]]
