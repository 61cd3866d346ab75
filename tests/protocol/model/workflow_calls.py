"""States and calls of workflows, for script_calls.py. The jobs that a state returns have ids that are known before."""

from typing import Any
from unittest import mock

from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.workflows import workflow_store
from django_rtq.workflows.steps.store import Holder
from tests.support.jobs import QUEUE, WORKER, settlement
from tests.support.workflows import FLOW, claim_members, new_flow, part

CHAIN = ({"size": 2, "client": "x", "next": "1", "keep": True}, {"after": "0", "next": "2"}, {"after": "1"})


def store(broker: Any, jobs: Any = None) -> Any:
    """Always with the same token: it is one call, sent again."""
    with mock.patch("django_rtq.workflows.store.secrets.token_hex", return_value="token"):
        return workflow_store(broker).store(new_flow(*CHAIN, key="flow\nmay"))


def stored(broker: Any) -> list[Any]:
    store(broker)
    return []


def start(broker: Any, jobs: Any = None) -> None:
    workflow_store(broker).start(store(broker)[2])


def start_first(broker: Any, jobs: Any) -> None:
    workflow_store(broker).start([part("0:0")])


def running(broker: Any) -> list[Any]:
    """Two members run."""
    start(broker)
    return claim_members(broker)


def ended(broker: Any) -> list[Any]:
    """They have ended, and the workflow has not heard of it."""
    _settle(broker, "finish_cancel", running(broker))
    return []


def finish(broker: Any, jobs: Any) -> None:
    _settle(broker, "ack", jobs)


def _settle(broker: Any, verb: str, jobs: Any) -> None:
    made = settlement(verb, *jobs)
    for _, command in made.commands(*[broker.keys.of(QUEUE)] * 2, WORKER, broker.config):
        broker.redis.execute_one(command)


def advance(broker: Any, jobs: Any) -> None:
    notes = broker.redis.execute_one(("HKEYS", broker.keys.of(QUEUE).ended_members))
    broker.redis.execute_one(workflow_store(broker).advance_command(FLOW, QUEUE, notes), resend=True)


def add(broker: Any, jobs: Any) -> None:
    """The first one adds a step that another one waits for."""
    member = min(job.id for job in jobs)
    run = broker.redis.execute_one(("HGET", broker.keys.of(QUEUE).running(WORKER), member), resend=True)
    texts = ["t", QUEUE, 1, 0, "", "0", "", "1", "t", QUEUE, 1, 1, "", "0", "0", ""]
    calls = "0 3    y\n{}\n"
    holder = Holder(QUEUE, member, WORKER, int((run or b"0 0").split()[1]))
    workflow_store(broker).add(holder, "shape", texts, [("0:0", calls), ("1:0", calls)])


def cancel(broker: Any, jobs: Any) -> None:
    workflow_store(broker).cancel(FLOW)


def cancelled(broker: Any) -> list[Any]:
    store(broker)
    workflow_store(broker).cancel(FLOW)
    return []


def forget(broker: Any, jobs: Any) -> None:
    workflow_store(broker).forget(FLOW, latest_ms=clock_ms(broker.redis.execute_one(("TIME",))))
