"""Collects what jobs log, and sends it: with their outcomes, and while they run.

A handler of the root logger would miss loggers that do not propagate, so:

1. the record factory of `logging` makes a record in the context of a job: its text is kept in memory
2. a thread sends what the running jobs have logged, a quarter of a second after the first line
3. when a job ends, the session sends the rest together with its outcome, in front of it
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from django_rtq.console.log_lines import MAX_LINES, MAX_TEXT, write_line
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.context import current_run
from django_rtq.core.jobs.failure import format_error
from django_rtq.core.jobs.job import made_ms
from django_rtq.core.worker.outcome import ACKED, CANCELLED, EXPIRED, Outcome
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import TOMBSTONE_MS
from django_rtq.exceptions import BrokerError, TimeLimitExceeded

PAUSE_SECONDS = 0.25  # between the first line and its sending, and between two sendings
MAX_WAITING = 5_000  # lines kept while Redis is unreachable, of all jobs together; the oldest are dropped
_MAX_FRAMES = 20
_ENQUEUED_MS = 1_000  # at the most between the making of a job and its enqueueing, if the clocks agree

logger = logging.getLogger("django_rtq")


class _Part(NamedTuple):
    """Lines of one run, and since its end how long they are kept."""

    run: Run
    number: int
    lines: list[str]
    over_ms: int | None


class JobLogs:
    """What the jobs of this process have logged and Redis does not have yet.

    add() takes no lock: a time limit may raise an exception there at any bytecode, and leave it locked. The callers of
    take() and confirm() take turns: what one has taken is confirmed, or taken again, before another takes more.
    """

    def __init__(self, config: Config, level: int, send: Callable[[JobLogs], None]) -> None:
        self._config = config
        self._level = level
        self._send = send
        self._token = secrets.token_hex(4)
        self._number = 0
        self._logged: dict[int, Run] = {}  # by id(): those with new lines, or whose end changes how long they are kept
        self._parts: list[_Part] = []  # taken, and not confirmed
        self._events: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True: there are lines; False: stop
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send_repeatedly, name="rtq-job-logs", daemon=True)
        self._factory: Any = None
        self._factory_before: Any = None

    # -- in the thread or coroutine of a job

    def install(self) -> None:
        """Look at all records from now on, whatever handlers there are, and start the thread."""
        before = self._factory_before = logging.getLogRecordFactory()

        def make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record: logging.LogRecord = before(*args, **kwargs)
            # logging.makeLogRecord() sets name and level afterwards: such a record was logged elsewhere
            level: Any = record.levelno
            name: Any = record.name
            if isinstance(level, int) and level >= self._level and isinstance(name, str):
                self.add(record)
            return record

        self._factory = make_record
        logging.setLogRecordFactory(make_record)
        self._thread.start()

    def add(self, record: logging.LogRecord) -> None:
        """Keep the text of a record, if a job runs here and the record is none of ours."""
        here = current_run.get()
        run = None if here is None else here.run
        if not isinstance(run, Run) or self._stopped.is_set() or f"{record.name}.".startswith("django_rtq."):
            return
        try:
            line = _line_of(record, run.attempt)
        except (TimeLimitExceeded, RecursionError):
            raise  # as logging does: a __str__ that logs itself would else go on, in each call again
        except Exception as error:  # noqa: BLE001 - a bad format, or what the __str__ of an argument raises
            message = record.msg[:MAX_TEXT] if isinstance(record.msg, str) else ""
            message = f"{message} ({type(error).__name__}: the line could not be formatted)"
            level: Any = record.levelname  # addLevelName() takes anything
            level = level if isinstance(level, str) else "ERROR"
            line = write_line(run.attempt, int(record.created * 1000), level, record.name, message)
        if run.log_lines is None:
            run.log_lines = deque(maxlen=MAX_LINES)
        run.log_lines.append(line)
        self._logged[id(run)] = run
        if self._events.empty():
            self._events.put(True)

    # -- in the session

    def end(self, run: Run, outcome: Outcome) -> None:
        """A run is over."""
        run.log_over_ms = _over_ms(run, outcome, self._config)
        if run.log_lines is not None or run.attempt > 1 or _was_ready_later(run):  # earlier runs may have logged
            self._logged[id(run)] = run

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._logged and not self._parts

    def take(self, settlements: dict[str, Settlement], worker: str) -> None:
        """Add what was logged so far to the settlements, in front of outcomes, for the jobs that this worker holds."""
        while self._logged:
            _, run = self._logged.popitem()
            lines = deque() if run.log_lines is None else run.log_lines
            self._number += 1
            self._parts.append(_Part(run, self._number, [lines.popleft() for _ in range(len(lines))], run.log_over_ms))
        waiting = sum(1 + len(part.lines) for part in self._parts)
        while waiting > MAX_WAITING:
            waiting -= 1 + len(self._parts.pop(0).lines)
        for part in self._parts:
            if part.run.worker == worker:
                settlements.setdefault(part.run.queue, Settlement()).logs.append(self._call(part))

    def confirm(self) -> None:
        """Redis has what was taken."""
        self._parts.clear()

    def _call(self, part: _Part) -> list[Argument]:
        run, over_ms = part.run, "" if part.over_ms is None else part.over_ms
        return [run.job_id, f"{self._token}-{part.number}", over_ms, len(part.lines), *part.lines]

    # -- in its own thread

    def _send_repeatedly(self) -> None:
        while self._events.get():
            self._stopped.wait(PAUSE_SECONDS)  # first: short jobs end meanwhile
            while not self._events.empty():  # what was logged meanwhile is sent now
                if not self._events.get():
                    return
            try:
                self._send(self)
            except BrokerError:
                if not self._stopped.is_set():
                    self._events.put(True)  # try again
            except Exception:
                logger.exception("what jobs have logged could not be sent; it is sent with the next lines")

    def stop(self) -> None:
        """Look at no more records, and end the thread. What was not sent yet is left."""
        self._stopped.set()
        self._events.put(False)
        if logging.getLogRecordFactory() is self._factory:  # else another one calls it
            logging.setLogRecordFactory(self._factory_before)
        if self._thread.is_alive():
            self._thread.join(timeout=5)


def collect_logs(config: Config, send: Callable[[JobLogs], None]) -> JobLogs | None:
    """Collect what jobs log, if the settings say so. `send` is called in a thread."""
    level = config.job_logs
    if level is None:
        return None
    logs = JobLogs(config, level, send)
    logs.install()
    return logs


def _over_ms(run: Run, outcome: Outcome, config: Config) -> int | None:
    """How long the lines of a job are kept after its end: as long as its outcome. None: it is not over, or dead."""
    if outcome.verb in (ACKED, CANCELLED):
        return max(int(run.result_ttl(config) * 1000), TOMBSTONE_MS)
    return TOMBSTONE_MS if outcome.verb == EXPIRED else None


def _was_ready_later(run: Run) -> bool:
    """Whether it may be a dead letter that was queued again, in attempt 1 again. Delayed jobs look the same."""
    return run.is_open and run.ready_ms > made_ms(run.id) + _ENQUEUED_MS


def _line_of(record: logging.LogRecord, attempt: int) -> str:
    error = record.exc_info[1] if record.exc_info else None
    traceback = "" if error is None else format_error(error, error.__traceback__, max_frames=_MAX_FRAMES).rstrip()
    at_ms, message = int(record.created * 1000), record.getMessage()
    return write_line(attempt, at_ms, record.levelname, record.name, message, traceback)
