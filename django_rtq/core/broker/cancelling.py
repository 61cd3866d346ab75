"""Cancels a job: the command, and how the supervisor of one that runs hears of it at once."""

from __future__ import annotations

from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.outcome import CANCELLED_UNRUN

#: Why a job was not cancelled, after its id.
NOT_CANCELLED = {"dead": "is dead: discard it instead.", "finished": "has finished already."}
TOKEN_MS = 3_600_000  # a supervisor that has not read it for so long is dead


def cancel_call(keys: QueueKeys, config: Config, job_id: str, running: str) -> Command:
    """Cancel a job. `running`: if it has started, "ask" it to stop, "terminate" its process, or "leave" it."""
    arguments = (config.max_results, job_id, config.cancelled_ttl_ms, CANCELLED_UNRUN, running)
    return SCRIPTS["cancel"].call(keys, arguments)


def wake_supervisor_of(keys: Keys, worker: str) -> Steps[None]:
    """Let the supervisor of a worker read its cancel requests now, if it is known. Raises BrokerError."""
    (supervisor,) = checked((yield [supervisor_command(keys, worker)]))
    if supervisor:
        checked((yield wake_commands(keys, supervisor.decode())))


def supervisor_command(keys: Keys, worker: str) -> Command:
    """Reads the name of a worker's supervisor."""
    return ("HGET", keys.worker(worker), "supervisor_name")


def wake_commands(keys: Keys, supervisor: str) -> list[Command]:
    """Let a supervisor read what it is asked for."""
    token = keys.control_signal(supervisor)
    return [("ZADD", token, 0, "look"), ("PEXPIRE", token, TOKEN_MS)]
