"""Requeueing or discarding all dead letters that match: asked first, done in bounded steps, shown as it goes.

1. a page repeats the filter and counts; it notes the moment, and what dies later is left alone
2. what fits into two seconds is done at once, and that is all for a thousand letters and many more
3. the rest becomes a job of the same queue, before all others, so that it goes on when the browser is closed
4. a page shows how many are left; where no worker comes for that job it offers to go on by hand
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.http import QueryDict

from django_rtq.admin import query_params
from django_rtq.admin.filters import FilterParams
from django_rtq.exceptions import BrokerError
from django_rtq.handle import JobHandle
from django_rtq.inspector.dead_letters import LATEST, STEP, Action, Selection
from django_rtq.inspector.inspector import Inspector
from django_rtq.internal_tasks import sweep_dead_letters

AT_ONCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a sweep within a request."""

    done: int = 0
    are_all: bool = False
    stopped_by: BrokerError | None = None  # what was done until then stays done


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Which dead letters are meant, and what is to be done with them."""

    verb: Action
    queue: str
    wanted: FilterParams
    until_ms: int | None  # what died later is not meant; None: not said yet
    per_second: int = 0  # at most; 0: as fast as it goes

    @classmethod
    def read(cls, given: QueryDict, verb: Action) -> Sweep:
        """From an address or a form."""
        until_ms = query_params.get_int(given, "until_ms", 0, most=LATEST)
        return cls(
            verb=verb,
            queue=query_params.get_queue_name(given),
            wanted=FilterParams.read(given),
            until_ms=until_ms or None,
            per_second=query_params.get_int(given, "per_second", 0, most=10_000),
        )

    @property
    def query(self) -> Mapping[str, object]:
        """As parameters of an address or fields of a form."""
        rate = {"per_second": self.per_second} if self.per_second else {}
        return {"queue": self.queue, **self.wanted.query, "until_ms": self.until_ms, **rate}

    def counted(self, inspector: Inspector) -> tuple[Sweep, Selection]:
        """How many there are by now, and the sweep with its moment noted."""
        selection = inspector.select(self.queue, self.wanted.filter, until_ms=self.until_ms)
        return replace(self, until_ms=selection.until_ms), selection

    def run(self, inspector: Inspector) -> Outcome:
        """Act for as long as a request may take. Raises nothing that would hide what was done."""
        if self.per_second:
            return Outcome()  # a request does not wait
        ends, total, cursor = time.monotonic() + AT_ONCE_SECONDS, 0, ""
        while True:
            try:
                swept = inspector.sweep(
                    self.queue, self.verb, self.wanted.filter, until_ms=self.until_ms or 0, cursor=cursor, limit=STEP
                )
            except BrokerError as error:
                return Outcome(done=total, stopped_by=error)
            total, cursor = total + len(swept.done), swept.cursor
            if not cursor:
                return Outcome(done=total, are_all=True)
            if time.monotonic() > ends:
                return Outcome(done=total)

    def leave_to_worker(self) -> JobHandle:
        """Let a job do the rest."""
        wanted: dict[str, Any] = asdict(self.wanted.filter)
        chore = sweep_dead_letters.using(queue_name=self.queue)
        return chore.delay(self.queue, self.verb, wanted, self.until_ms or 0, self.per_second)
