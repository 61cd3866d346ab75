"""Undo: jobs that a person deletes are set aside for a while, in the queue, and can be put back: see lib/undo.lua.

An action has one token for all of its steps, in all queues. What is set aside is kept for an hour while the action goes
on in steps, and for OFFERED_SECONDS and a margin after the last step; while its undo goes on in steps, for BEGUN_DAYS:
the job that continues it may wait in a paused queue.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import uuid4

from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import SCRIPTS

OFFERED_SECONDS = 30
BEGUN_DAYS = 7  # for which an undo that has begun can be continued
MOST_JOBS = 100_000  # set aside in a queue at any time; beyond, an action cannot be undone
MOST_BYTES = 64 * 2**20  # the same, of their records and failures
AT_ONCE = 50  # jobs that one call restores; fewer if they are large
_TEXTS = 10  # texts of each job, as in lib/undo.lua
_MARGIN_SECONDS = 10  # for the click of the last second
_UNDERWAY_MS, _BEGUN_MS = 3_600_000, BEGUN_DAYS * 86_400_000
_TOKEN = re.compile(r"(discard|purge)-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AsideJobs:
    """What an action has set aside in a queue."""

    jobs: int = 0
    is_too_much: bool = False  # it had to be given up: it cannot be undone
    seconds: float | None = 0.0  # for which an undo is offered; None: the action goes on, or its undo

    @property
    def can_be_undone(self) -> bool:
        """Whether to offer it."""
        return self.jobs > 0 and self.seconds != 0


def new_token(verb: str) -> str:
    """A token for an action that shall be undoable."""
    return f"{verb}-{uuid4().hex}"


def verb_of(token: str) -> str:
    """What is to be undone; "" for a text that is no token."""
    parts = _TOKEN.fullmatch(token)
    return parts[1] if parts else ""


def script_argument(token: str) -> str:
    """How scripts get a token. "" is none: then nothing is set aside."""
    return f"{token} {_UNDERWAY_MS} {MOST_JOBS} {MOST_BYTES}" if token else ""


class Undos:
    """Reads what is set aside, and puts it back. Any thread may use it. Raises BrokerError."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def read(self, queue: str, token: str) -> AsideJobs:
        """What an action has set aside in a queue, until now."""
        return self._offer(queue, token, "")

    def close(self, queue: str, token: str) -> AsideJobs:
        """The action is over: from now on, an undo is offered for OFFERED_SECONDS. Repeating it extends the time.

        An undo that has begun is left alone.
        """
        return self._offer(queue, token, (OFFERED_SECONDS + _MARGIN_SECONDS) * 1000)

    def restore(self, queue: str, token: str, limit: int = AT_ONCE) -> tuple[int, int, list[str]]:
        """Put some jobs of a queue back. Returns how many are left, how many stay away, and the ids of those put back.

        A job stays away if another unique job of its key exists.
        """
        live_ms, limit = self._broker.config.dead_letter_ms, min(limit, AT_ONCE)
        call = SCRIPTS["restore"].call(self._broker.keys.of(queue), (token, uuid4().hex, _BEGUN_MS, limit, live_ms))
        left, left_out, *restored = self._broker.redis.execute_one(call, resend=True) or [0, 0]
        return left, left_out, [job_id.decode() for job_id in restored]

    # -- inside

    def _offer(self, queue: str, token: str, keep_ms: int | str) -> AsideJobs:
        call = SCRIPTS["offer_undo"].call(self._broker.keys.of(queue), (token, keep_ms))
        given_up, texts, ttl_ms = self._broker.redis.execute_one(call, resend=True)
        left = ttl_ms / 1000 - _MARGIN_SECONDS
        return AsideJobs(
            jobs=0 if given_up else texts // _TEXTS,
            is_too_much=bool(given_up),
            seconds=None if left > OFFERED_SECONDS else max(0.0, left),
        )
