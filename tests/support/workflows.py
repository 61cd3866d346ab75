"""Makes workflows, and lets their members end."""

from dataclasses import replace
from types import SimpleNamespace

from django_rtq.core.jobs.job import is_member
from django_rtq.workflows import workflow_store
from django_rtq.workflows.store import NewWorkflow, Part
from tests.support.jobs import QUEUE, WORKER, settle, settlement
from tests.support.waiting import server_ms

FLOW = "0123456789ab"
BLOCKED = 10**13  # in `workflow_states`


def new_flow(*steps, flow_id=FLOW, key="", **fields):
    """A workflow with these steps, each a dictionary: task, size, after, next, queue, keep, call."""
    texts, parts, first = {"name": "flow", "client": "", "on_dead": "block", "steps": len(steps), **fields}, [], 0
    if key:
        texts["key"] = key
    for number, step in enumerate(steps):
        size = step.get("size", 1)
        texts |= {
            f"task:{number}": step.get("task", "t"),
            f"queue:{number}": step.get("queue", QUEUE),
            f"size:{number}": size,
            f"first:{number}": first,
            f"parts:{number}": "0" if size else "",
            f"after:{number}": step.get("after", ""),
            f"next:{number}": step.get("next", ""),
            f"state:{number}": "waiting",
            f"ends:{number}": "0 0 0",
        }
        if step.get("keep"):
            texts[f"keep:{number}"] = "1"
        if size:
            call = f"0 3 {step.get('due', '')}   {step.get('client', '')}\n{step.get('call', '{}')}\n"
            parts.append((f"{number}:0", call * size))
        first += size
    return NewWorkflow(id=flow_id, key=key, fields=texts, parts=parts)


def parts_flow(number):
    """A step of so many parts with one member each."""
    flow = new_flow({"size": number})
    ((_, calls),) = flow.parts
    lines = calls.splitlines(keepends=True)
    flow.fields["parts:0"] = " ".join(map(str, range(number)))
    parts = [(f"0:{place}", "".join(lines[2 * place : 2 * place + 2])) for place in range(number)]
    return replace(flow, parts=parts)


def begun_flow(broker, *steps, **options):
    """A workflow whose first steps are enqueued."""
    answer, _, parts = workflow_store(broker).store(new_flow(*steps, **options))
    assert answer == "ok"
    workflow_store(broker).start(parts)
    return options.get("flow_id", FLOW)


def claimed_flow(broker, *steps, **options):
    """The members of the first steps of a workflow, claimed."""
    begun_flow(broker, *steps, **options)
    return claim_members(broker, 200)


def claim_members(broker, wanted=10, *, worker=WORKER, queue=QUEUE):
    """Claim members, as values with an id."""
    broker.sign_on([queue], worker)
    return [
        SimpleNamespace(id=job_id.decode())
        for part in broker.claim(worker, [queue], wanted).claimed
        for job_id in part.ids
        if is_member(job_id)
    ]


def end(broker, verb, *members, **options):
    """End the runs of members; the workflow hears of it."""
    assert settle(broker, verb, *members, **options) == []


def blocked_flow(broker, queue="flows"):
    """A workflow whose only job is dead, in a queue of its own."""
    begun_flow(broker, {"queue": queue})
    _end_in(broker, queue, "bury", *claim_members(broker, queue=queue))


def seed_blocked(redis, broker, seconds, flow_id=FLOW):
    """Let a blocked workflow have been so for some seconds."""
    redis.zadd(broker.keys.of(QUEUE).workflow_states, {f"{flow_id} flow": BLOCKED + server_ms(redis) - seconds * 1000})


def shown_flows(broker, queue="flows"):
    """Two workflows with a step in each state: one that runs, one that has failed. Returns their ids."""
    running, failed = f"{FLOW[:-1]}c", f"{FLOW[:-1]}d"
    begun_flow(broker, {"queue": queue, "size": 2, "next": "1"}, {"queue": queue, "after": "0"}, flow_id=running)
    _end_in(broker, queue, "ack", *claim_members(broker, 1, queue=queue))
    claim_members(broker, queue=queue)
    begun_flow(
        broker,
        {"queue": queue, "next": "1"},
        {"queue": queue, "after": "0", "next": "2"},
        {"queue": queue, "after": "1"},
        flow_id=failed,
    )
    for verb in ("ack", "finish_cancel"):
        _end_in(broker, queue, verb, *claim_members(broker, queue=queue))
    return running, failed


def _end_in(broker, queue, verb, *members):
    assert broker.settle(WORKER, queue, settlement(verb, *members)) == []


def advance(broker, *members, flow_id=FLOW, queue=QUEUE):
    """Tell the workflow; returns what is new, and the parts that are to be enqueued."""
    command = workflow_store(broker).advance_command(flow_id, queue, [member.id for member in members])
    news, *rest = broker.redis.execute_one(command, resend=True)
    return news.decode(), [part.decode() for part in rest[1::2]]


def fields_of(broker, flow_id=FLOW):
    return workflow_store(broker).read_fields([flow_id])[0]


def states_of(broker, flow_id=FLOW):
    fields = fields_of(broker, flow_id)
    return [fields[f"state:{number}"] for number in range(int(fields["steps"]))]


def part(name, *, flow_id=FLOW, queue=QUEUE):
    return Part(flow_id, name, queue)
