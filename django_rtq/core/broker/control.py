"""Remote control of workers: quiet, resume and stop them, and cancel jobs.

A cancel request is stored in the queue of the job (`cancel_requests`), a command for a worker under the name of its
supervisor. Both are states that may be read any number of times. A token beside them wakes the supervisor, so that it
reads them at once.
"""

from __future__ import annotations

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.job import StrEnum
from django_rtq.core.jobs.outcome import CANCELLED_UNRUN

KEPT_MS = 3_600_000  # a command, a token; a supervisor that has not read them for so long is dead
#: Why a job was not cancelled, after its id.
NOT_CANCELLED = {"dead": "is dead: discard it instead.", "finished": "has finished already."}


class WorkerCommand(StrEnum):
    """What a supervisor is told to do."""

    WORK = "work"
    QUIET = "quiet"  # claim no jobs, and stay
    STOP = "stop"  # as after SIGTERM


def send_command(broker: Broker, supervisor: str, command: WorkerCommand, *, by: str = "") -> None:
    """Store a command, and by whom, for WorkerBroker.read_commands(), and wake the supervisor."""
    text = f"{command.value} {by}".rstrip()
    store: Command = ("SET", broker.keys.control(supervisor), text, "PX", KEPT_MS)
    broker.redis.execute([store, *_wake_commands(broker.keys, supervisor)], resend=True)


def supervisor_of(broker: Broker, worker: str) -> str:
    """The name of a worker's supervisor; "" if it is unknown."""
    supervisor = broker.redis.execute_one(_supervisor_command(broker.keys, worker), resend=True)
    return supervisor.decode() if supervisor else ""


# -- cancelling a job: the command, and how the supervisor of one that runs hears of it at once


def cancel_call(keys: QueueKeys, config: Config, job_id: str, running: str) -> Command:
    """Cancel a job. `running`: if it has started, "ask" it to stop, "terminate" its process, or "leave" it."""
    keep_ms = int(max(config.result_ttl, 120) * 1000)
    arguments = (config.max_results, job_id, keep_ms, CANCELLED_UNRUN, running)
    return SCRIPTS["cancel"].call(keys, arguments)


def wake_supervisor_of(keys: Keys, worker: str) -> Steps[None]:
    """Let the supervisor of a worker read its cancel requests now, if it is known. Raises BrokerError."""
    (supervisor,) = checked((yield [_supervisor_command(keys, worker)]))
    if supervisor:
        checked((yield _wake_commands(keys, supervisor.decode())))


def _supervisor_command(keys: Keys, worker: str) -> Command:
    """Reads the name of a worker's supervisor."""
    return ("HGET", keys.worker(worker), "supervisor_name")


def _wake_commands(keys: Keys, supervisor: str) -> list[Command]:
    """Let a supervisor read what it is asked for."""
    token = keys.control_signal(supervisor)
    return [("ZADD", token, 0, "look"), ("PEXPIRE", token, KEPT_MS)]
