"""States and calls of what jobs remember, for script_calls.py."""

from typing import Any

from django_rtq.core.jobs.record import HeldEntry
from django_rtq.workflows import step_store
from django_rtq.workflows.steps.store import Holder, send_command
from tests.support.jobs import QUEUE, WORKER, claimed_job, settle

DONE = '1795205063204 1500 {"id":7}'


def holder(broker: Any, job: Any, worker: str = WORKER) -> Holder:
    """The run that holds a job."""
    held = broker.redis.execute_one(("HGET", broker.keys.of(QUEUE).running(WORKER), job.id)) or b"1 1"
    return Holder(QUEUE, job.id, worker, HeldEntry.read(held).claimed_ms or 0)


def record(broker: Any, jobs: Any) -> None:
    """A run has finished a step."""
    write_step(broker, holder(broker, jobs[0]), "step charge")


def write_step(broker: Any, run: Holder, field: str, text: str = DONE) -> Any:
    """Note that the run has done a step."""
    return broker.redis.run(step_store(broker).write(run, field, text))


def read_steps(broker: Any, run: Holder) -> Any:
    """What the job of the run remembers."""
    return broker.redis.run(step_store(broker).read(run))


def suspend(broker: Any, *jobs: Any, waits_for: str = "0 0 1 approved", ms: int = 60_000, worker: str = WORKER) -> Any:
    """Runs wait for an event."""
    return settle(broker, "suspend", *jobs, worker=worker, keep_ms=ms, outcome=waits_for)


def suspend_all(broker: Any, jobs: Any) -> None:
    suspend(broker, *jobs)


def waiting_job(broker: Any, **options: Any) -> Any:
    """It waits for an event."""
    job = claimed_job(broker, "a", client="x")
    suspend(broker, job, **options)
    return job


def send_event(
    broker: Any, job: Any, event: str = "approved", token: str = "t1", value: str = "7", limits: tuple[int, ...] = ()
) -> str:
    """Give a job an event. `limits`: unread events, events, and bytes of values."""
    command = send_command(broker.keys.of(QUEUE), job.id, event, token, value)
    command = (*command[:-3], *limits) if limits else command
    word: bytes = broker.redis.execute_one(command, resend=True)
    return word.decode()


def send(broker: Any, jobs: Any) -> None:
    send_event(broker, jobs[0])
