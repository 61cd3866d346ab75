"""What a child holds, and what it has to tell about it. The other end of every round trip."""

from __future__ import annotations

import contextvars
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.messages import ClaimResult
from django_rtq.broker.settlement import Settlement
from django_rtq.exceptions import BrokerError, BrokerUnavailable
from django_rtq.worker.exit_codes import EXIT_FORKED
from django_rtq.worker.outcome import Acked, Outcome, Unknown
from django_rtq.worker.process.metrics import RunMetrics
from django_rtq.worker.process.outcome_recorder import OutcomeRecorder, park_or_bury, send_outcome
from django_rtq.worker.process.progress import Said
from django_rtq.worker.process.reconciler import Reconciler
from django_rtq.worker.process.run import Run
from django_rtq.worker.shared_entries import Over
from django_rtq.worker.shared_memory import LONGEST_NAME, SharedState

LOOK_AGAIN_SECONDS = 5.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")  # a script writes the name into JSON


class WorkerSession:
    """The jobs of one worker name: claimed, settled, given back. Any thread may use it."""

    def __init__(self, broker: Broker, page: SharedState, queues: Sequence[str], *, base_name: str) -> None:
        self._broker = broker
        self._page = page
        self._queues = list(queues)
        self._base_name = base_name
        self._lock = threading.Lock()
        self._trip = threading.RLock()  # one round trip at a time: what is under way is in neither list
        self._settlements: dict[str, Settlement] = {}
        self._held: dict[bytes, str] = {}  # id -> queue: claimed under this name, and no outcome yet
        self._metrics = RunMetrics()
        self._record = OutcomeRecorder(broker.config, page, self._metrics).record
        self._perhaps_told: set[str] = set()  # ids that were sent and not answered: stale is no news of them
        self._is_in_doubt = False
        self._look_again_at = 0.0  # on time.monotonic(), while in doubt
        self._differs = False  # from what Redis has written down, or may
        self._losses_seen = broker.redis.connections_lost  # when it was last compared
        self._compared_at = time.monotonic()
        self._reconciler = Reconciler(self.compare, lambda: bool(self._held), lease_seconds=broker.config.lease_seconds)
        self._pid = os.getpid()
        self.worker = ""

    # -- taking part

    def sign_on(self) -> None:
        """Take part under a new name: names are never used again (rule 5). Raises BrokerUnavailable."""
        name = f"{_UNSAFE.sub('-', self._base_name)}:{os.getpid()}:{secrets.token_hex(4)}"
        with self._trip:
            with self._lock:
                self.worker = name[-LONGEST_NAME:]
                self._held.clear()  # what was claimed under another name belongs to others by now
            self._page.sign(self.worker)
            self._broker.sign_on(self._queues, self.worker)

    def sign_off(self) -> None:
        """Give up the name; for who holds nothing. Raises BrokerUnavailable."""
        with self._trip:
            self.tell_counts()
            while not self._broker.sign_off(self._queues, self.worker):
                self._release_unknown()

    def close(self) -> None:
        """End the thread."""
        self._reconciler.stop()

    # -- outcomes

    def add(self, run: Run, outcome: Outcome) -> None:
        """Note what follows from a run, to be told with the next claim; then say so.

        A run that was claimed under a former name changes nothing, even if the job was claimed anew here (G4).
        """
        if os.getpid() != self._pid:
            os._exit(EXIT_FORKED)  # a job forked, and its copy came back from it: there is only one worker
        if run.worker != self.worker:
            self._page.drop(run.entry)
            signals.job_stale.send_robust(WorkerSession, job_ids=[run.job_id.decode()], worker=run.worker)
            return
        if isinstance(outcome, Unknown):
            outcome = park_or_bury(self._broker, run, outcome)
        with self._lock:
            self._held.pop(run.job_id, None)
            settlement = self._settlements.get(run.queue)
            if settlement is None:
                settlement = self._settlements[run.queue] = Settlement()
            self._record(settlement, run, outcome)
        if type(outcome) is not Acked or signals.job_succeeded.receivers:
            variables = contextvars.copy_context() if run.variables is None else run.variables
            variables.run(send_outcome, WorkerSession, run, outcome)

    def release(self, job_ids: Iterable[bytes]) -> None:
        """Note that these jobs are given back unrun, the attempt not counted."""
        released: dict[str, list[bytes]] = {}
        with self._lock:
            for job_id in job_ids:
                queue = self._held.pop(job_id, None)
                if queue is not None:
                    self._settlements.setdefault(queue, Settlement()).release.append(job_id)
                    released.setdefault(queue, []).append(job_id)
        if signals.job_released.receivers:
            for queue, ids in released.items():
                signals.job_released.send_robust(
                    WorkerSession, job_ids=[job_id.decode() for job_id in ids], queue=queue
                )

    def forget(self, job_ids: Iterable[bytes]) -> None:
        """The supervisor gives these back, under our name: we take another one before we claim again."""
        with self._lock:
            for job_id in job_ids:
                self._held.pop(job_id, None)
            for settlement in self._settlements.values():  # the supervisor may have told it as well
                self._perhaps_told.update(job_id.decode() for job_id in settlement.job_ids())
        self.doubt()

    @property
    def held(self) -> list[bytes]:
        """Claimed jobs without an outcome."""
        with self._lock:
            return list(self._held)

    @property
    def has_outcomes(self) -> bool:
        """Whether runs that are over were not told yet."""
        with self._lock:
            return any(settlement.has_outcomes for settlement in self._settlements.values())

    # -- round trips

    def fetch(self, wanted: int, *, idle: int, queues: Sequence[str] | None = None) -> ClaimResult:
        """Settle all there is to settle, and claim. Raises BrokerUnavailable: then nothing is forgotten."""
        with self._trip:
            return self._fetch(wanted, self._queues if queues is None else queues, idle=idle)

    def _fetch(self, wanted: int, queues: Sequence[str], *, idle: int) -> ClaimResult:
        with self._lock:
            for queue, calls in self._metrics.take().items():
                self._settlements.setdefault(queue, Settlement()).metrics += calls
            settlements, self._settlements = self._settlements, {}
            over = self._page.hand_over()
        asked_at = time.monotonic()
        self._page.live(asked_at)
        try:
            fetched = self._broker.claim(self.worker, queues, wanted, settlements=settlements, idle=idle)
        except BrokerError as error:
            self._perhaps_told.update(job_id.decode() for s in settlements.values() for job_id in s.job_ids())
            self._put_back(settlements, self._page.not_told, over)
            self.doubt()
            raise error if isinstance(error, BrokerUnavailable) else BrokerUnavailable(str(error)) from error
        self._put_back(settlements, self._page.told, over)
        if fetched.stale:
            self._heed_stale(fetched.stale)
        if self._perhaps_told and fetched.error is None:
            self._perhaps_told.clear()
        self.hold(fetched, asked_at=asked_at)
        return fetched

    def _heed_stale(self, job_ids: Sequence[str]) -> None:
        """Jobs that we settled are not ours: others have them, or Redis has older data than we."""
        stale = [job_id for job_id in job_ids if job_id not in self._perhaps_told]
        if stale:
            self.compare_soon()
            signals.job_stale.send_robust(WorkerSession, job_ids=stale, worker=self.worker)

    def hold(self, fetched: ClaimResult, *, asked_at: float) -> None:
        """Note what was claimed. Raises BrokerUnavailable for an answer that comes late: this process was stopped,
        and its jobs may be somebody else's by now.
        """
        seconds = time.monotonic() - asked_at
        if seconds > self._broker.config.lease_seconds / 2:
            self.doubt()
            raise BrokerUnavailable(f"The answer to a claim was read after {seconds:.1f} s, too late to believe it.")
        with self._lock:
            for claimed in fetched.claimed:
                for job_id in claimed.ids:
                    self._held[job_id] = claimed.queue
        if fetched.found:
            self._reconciler.note_jobs()

    def settle(self) -> None:
        """Tell all there is to tell, without claiming. Raises BrokerUnavailable."""
        with self._trip:  # what another thread has under way is not told yet, and comes back if it cannot be
            if self._settlements:
                fetched = self.fetch(0, idle=0)
                if fetched.error is not None:
                    raise BrokerUnavailable(str(fetched.error)) from fetched.error

    def tell_progress(self, said: Said) -> None:
        """Tell how far jobs are, which were perhaps claimed under a former name. Raises BrokerUnavailable."""
        for worker in {worker for worker, _, _ in said}:
            self._broker.report_progress(worker, [(q, job, line) for (w, q, job), line in said.items() if w == worker])

    def tell_counts(self) -> None:
        """Tell what was counted too, and do not wait for the next jobs. Raises BrokerUnavailable."""
        with self._lock:
            self._metrics.make_due()
        if self._metrics:
            self.fetch(0, idle=0)
        self.settle()

    # -- comparing

    def doubt(self) -> None:
        """An answer got lost: Redis may have written down more, or less, than we know."""
        self._is_in_doubt = True
        self._look_again_at = 0.0

    def compare_soon(self) -> None:
        """Redis may have lost what it had written down, or come back with what it had before."""
        self._differs = True
        self._reconciler.compare_soon()

    @property
    def is_to_be_compared(self) -> bool:
        """Whether reconcile() would ask Redis now."""
        if self._differs or self._losses_seen != self._broker.redis.connections_lost:
            return True
        return self._is_in_doubt and time.monotonic() >= self._look_again_at

    def reconcile(self, *, at_least_each: float | None = None) -> None:
        """Give back what Redis has written down for us and we do not know of, when there is a reason to look.

        With `at_least_each`, also when it was not compared for so many seconds. For the thread that claims, and only
        while it has no claim under way.

        A claim whose answer got lost may still be on its way to a server that hangs. So we take a new name as soon as
        we hold nothing (rule 5): under the old one such a claim is refused. Until then we look again from time to time.
        """
        with self._trip:
            is_old = at_least_each is not None and time.monotonic() - self._compared_at > at_least_each
            if not self.is_to_be_compared and not is_old:
                return
            if not self._is_in_doubt:
                self._release_unknown()
                return
            self.settle()
            self._release_unknown()
            self._look_again_at = time.monotonic() + LOOK_AGAIN_SECONDS
            with self._lock:
                if self._held or self._settlements:
                    return
            self.sign_off()
            self.sign_on()
            self._is_in_doubt = False

    def compare(self) -> None:
        """The same, at any time and in any thread, but only while something is held.

        Else an idle worker's claim may be waiting in the server, and what it brings would be given back.
        """
        with self._trip:
            if self._held:
                self._release_unknown()

    def _release_unknown(self) -> None:
        losses, self._differs = self._broker.redis.connections_lost, False
        try:
            for queue, job_ids in self._broker.running(self.worker, self._queues).items():
                with self._lock:  # what was done meanwhile is not held any more, but not told yet either
                    done = self._settlements[queue].job_ids() if queue in self._settlements else set()
                    unknown = [job_id for job_id in job_ids if job_id not in self._held and job_id not in done]
                if unknown:
                    self._broker.settle(self.worker, queue, Settlement(release=list(unknown)))
        except BrokerError:
            self._differs = True
            raise
        self._losses_seen, self._compared_at = losses, time.monotonic()

    def _put_back(self, settlements: dict[str, Settlement], say: Callable[[Over], None], over: Over) -> None:
        """What could not be told is told next time, before what came meanwhile."""
        with self._lock:
            say(over)
            for queue, settlement in settlements.items():
                if settlement:
                    later = self._settlements.get(queue)
                    self._settlements[queue] = settlement.joined(later) if later else settlement
