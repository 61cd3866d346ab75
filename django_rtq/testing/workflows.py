"""Workflows while captured() or eager() is active: what WorkflowStore does in Redis, in this process."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from django_rtq import signals
from django_rtq.broker.job_steps import Holder
from django_rtq.broker.messages import NewJob
from django_rtq.broker.redis.commands import Token
from django_rtq.broker.workflows import (
    STEP_TEXTS,
    NewWorkflow,
    Part,
    WorkflowStore,
    member_id,
    started_parts,
    workflow_of,
)
from django_rtq.exceptions import JobError, JobNotFound, WorkflowFailed
from django_rtq.inspector.details import JobDetails
from django_rtq.jobs import serializer
from django_rtq.jobs.job import CancelAnswer, JobState

FINAL = ("succeeded", "failed", "cancelled")
ENDS = {JobState.SUCCEEDED: "done", JobState.DEAD: "dead", JobState.CANCELLED: "gone", JobState.EXPIRED: "gone"}


class Jobs(Protocol):
    """What a workflow needs of a Substitute, which imports this module."""

    name: str

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> list[str]: ...
    def find(self, job_id: str, queue: str | None = None) -> JobDetails: ...
    def cancel(self, job_id: str) -> CancelAnswer: ...


class MemoryWorkflows:
    """The workflows of a block. Their jobs go to the substitute, and what waits for them follows if they are over."""

    def __init__(self, substitute: Jobs) -> None:
        self._substitute = substitute
        self._flows: dict[str, NewWorkflow] = {}
        self._fields: dict[str, dict[str, str]] = {}
        self._ends: dict[tuple[str, int], dict[str, list[int]]] = {}  # of a step: how -> places
        self._outcomes: dict[tuple[str, int], bytes] = {}

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self._fields.values())

    # -- as WorkflowStore

    def store(self, flow: NewWorkflow, register_queues: object = None) -> tuple[str, str, list[Part]]:
        for other, fields in self._fields.items():
            if flow.key and fields.get("key") == flow.key and fields["state"] not in FINAL:
                return "duplicate", other, []
        made = {"state": "running", "made": f"{time.time_ns() // 1_000_000}"}
        self._flows[flow.id] = flow
        self._fields[flow.id] = {**{name: str(text) for name, text in flow.fields.items()}, **made}
        self._update_state(flow.id)
        return "ok", "running", [part for step in self._startable(flow.id) for part in self._parts(flow.id, step)]

    def make(self, flow: NewWorkflow, register_queues: object) -> tuple[str, str]:
        answer, other, parts = self.store(flow)
        self.start(parts)
        return answer, other

    def add(
        self,
        holder: Holder,
        shape: str,
        texts: Sequence[Any],
        parts: Sequence[tuple[str, str]],
        register_queues: object = None,
    ) -> tuple[str, str]:
        flow, number = workflow_of(holder.job_id), int(holder.job_id[-6:], 16)
        fields, last = self._fields[flow], int(self._fields[flow]["steps"]) - 1
        own = _step_with(fields, number)
        first, base = int(fields[f"first:{last}"]) + _size(fields, last), last + 1
        waiting = fields[f"next:{own}"]
        added = range(base, base + len(texts) // STEP_TEXTS)
        for step in added:
            place = STEP_TEXTS * (step - base)
            task, queue, size, own_first, keep, places, after, following = texts[place : place + STEP_TEXTS]
            then = _shifted(following, base)
            if not re.search(r"\d( |$)", then):  # only their end is enough for others of these, or there are none
                then += f" {waiting}"
                for follower, how in re.findall(r"(\d+)(e?)", waiting):
                    fields[f"after:{follower}"] += f" {step}{how}"
            values = (
                task,
                queue,
                size,
                own_first + first,
                keep,
                places,
                _shifted(after, base),
                then,
                "waiting",
                "0 0 0",
            )
            names = ("task", "queue", "size", "first", "keep", "parts", "after", "next", "state", "ends")
            fields |= {f"{name}:{step}": str(value) for name, value in zip(names, values, strict=True)}
        fields |= {"steps": str(added.stop), f"added:{number}": f"{first} {base} {len(added)} whole"}
        moved = [(_shifted(name.partition(":")[0], base) + name[name.index(":") :], calls) for name, calls in parts]
        self._flows[flow] = replace(self._flows[flow], parts=[*self._flows[flow].parts, *moved])
        for step in added:
            if not fields[f"after:{step}"]:
                self.start(self._parts(flow, step))
        return "ok", ""

    def start(self, parts: Sequence[Part]) -> None:
        for part in parts:
            step, place = map(int, part.name.split(":"))
            self._enqueue(part.workflow, step, place)
            self._go_on(part.workflow, step)

    def tell(self, queue: str, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            if (flow := workflow_of(job_id)) in self._fields:
                fields, number = self._fields[flow], int(job_id[-6:], 16)
                step = _step_with(fields, number)
                self._note(flow, step, number - int(fields[f"first:{step}"]), number, job_id)
                self._go_on(flow, step)

    def read_fields(self, workflows: Sequence[str]) -> list[dict[str, str]]:
        return [self._fields.get(flow, {}) for flow in workflows]

    def bitmaps(self, workflow: str, step: int, *hows: str) -> list[bytes]:
        ends = self._ends.get((workflow, step), {})
        size = int(self._fields[workflow][f"size:{step}"])
        texts = [["1" if place in ends.get(how, ()) else "0" for place in range(-(-size // 8) * 8)] for how in hows]
        return [int("".join(bits), 2).to_bytes(len(bits) // 8, "big") if bits else b"" for bits in texts]

    def outcomes(self, workflow: str, numbers: Sequence[int]) -> list[bytes | None]:
        workflow, _, adder = workflow.partition("+")
        first = int(self._fields[workflow][f"added:{adder}"].split()[0]) if adder else 0
        return [self._outcomes.get((workflow, first + number)) for number in numbers]

    def wait(self, waits: object, workflow: str, seconds: float) -> dict[str, str]:
        raise WorkflowFailed(workflow, f"is not over, and nothing ends it: {self._substitute.name} is active.")

    def token(self, workflow: str) -> Token:
        raise WorkflowFailed(workflow, f"is not over, and nothing ends it: {self._substitute.name} is active.")

    def cancel(self, workflow: str) -> str:
        fields = self._fields.get(workflow)
        if fields is None or fields["state"] in FINAL:
            return "missing" if fields is None else "over"
        self._set_state(workflow, "cancelled")
        return "cancelled"

    def cancel_members(self, workflow: str, *, most_jobs: int | None) -> None:
        for part in started_parts(workflow, self._fields[workflow]):
            for place, job_id in part.ids():
                with suppress(JobError):  # it is over
                    self._substitute.cancel(job_id)
                    self._note(workflow, part.step, place, part.first + place - part.place, job_id)

    # -- inside

    def _parts(self, flow: str, step: int) -> list[Part]:
        fields = self._fields[flow]
        if fields[f"state:{step}"] == "waiting":
            fields[f"state:{step}"] = "started"
        if not fields[f"parts:{step}"]:
            self._go_on(flow, step)
        return [Part(flow, f"{step}:{place}", fields[f"queue:{step}"]) for place in fields[f"parts:{step}"].split()]

    def _startable(self, flow: str) -> list[int]:
        fields = self._fields[flow]
        return [step for step in _steps(fields) if not fields[f"after:{step}"] and fields.get("on_death") != str(step)]

    def _enqueue(self, flow: str, step: int, place: int) -> None:
        """Enqueue the jobs of a part, one after the other, and note how those end that run at once."""
        fields, now_ms = self._fields[flow], time.time_ns() // 1_000_000
        fields[f"at:{step}:{place}"] = str(now_ms)
        first, keeps = int(fields[f"first:{step}"]), fields.get(f"keep:{step}") == "1"
        lines = dict(self._flows[flow].parts)[f"{step}:{place}"].splitlines()
        for offset, (head, body) in enumerate(zip(lines[::2], lines[1::2], strict=True), start=place):
            priority, max_crashes, due, expires, at_front, client = head.split(" ", 5)
            job_id = member_id(flow, now_ms, first + offset, keeps=keeps)
            if fields["state"] == "cancelled" and fields.get("on_death") != str(step):
                self._count(flow, step, offset, "gone")
                continue
            job = NewJob(job_id, int(priority), int(max_crashes), client, due, expires, at_front, body)
            try:
                self._substitute.enqueue(fields[f"queue:{step}"], [job])
            finally:  # it may raise what the job has raised
                self._note(flow, step, offset, first + offset, job_id)

    def _note(self, flow: str, step: int, place: int, number: int, job_id: str) -> None:
        try:
            details = self._substitute.find(job_id)
        except JobNotFound:  # it could not run, and what raises says why
            return
        how = ENDS.get(details.state)
        if how is None:
            return
        self._count(flow, step, place, how)
        if how == "done":
            self._outcomes[flow, number] = f'{{"result":{serializer.dumps(details.result)}}}'.encode()
        self._update_state(flow)

    def _count(self, flow: str, step: int, place: int, how: str) -> None:
        ends = self._ends.setdefault((flow, step), {"done": [], "dead": [], "gone": []})
        ends[how].append(place)
        self._fields[flow][f"ends:{step}"] = " ".join(str(len(places)) for places in ends.values())

    def _go_on(self, flow: str, step: int) -> None:
        """Finish a step if all of its jobs are over, and start what follows."""
        fields = self._fields[flow]
        done, dead, gone = map(int, fields[f"ends:{step}"].split())
        on_death, blocks = fields.get("on_death"), fields["on_dead"] == "block"
        if on_death == str(step):  # nothing waits for it
            if done + gone:
                fields[f"state:{step}"] = "succeeded" if done else "failed"
            return
        if dead and on_death is not None and fields[f"state:{on_death}"] == "waiting":
            self.start(self._parts(flow, int(on_death)))
        if fields["state"] in FINAL or done + gone + (0 if blocks else dead) < int(fields[f"size:{step}"]):
            return
        self._finish(flow, step, "failed" if gone + dead else "succeeded")
        self._update_state(flow)

    def _finish(self, flow: str, step: int, state: str) -> None:
        fields = self._fields[flow]
        if fields[f"state:{step}"] not in ("waiting", "started"):
            return
        fields[f"state:{step}"] = state
        for text in fields[f"next:{step}"].split():
            follower = int(text.rstrip("e"))
            if state != "succeeded" and not text.endswith("e"):
                self._finish(flow, follower, "skipped")
            elif fields[f"state:{follower}"] == "waiting" and all(
                self._is_over(flow, before) for before in fields[f"after:{follower}"].split()
            ):
                self.start(self._parts(flow, follower))

    def _is_over(self, flow: str, text: str) -> bool:
        return self._fields[flow][f"state:{text.rstrip('e')}"] not in ("waiting", "started")

    def _update_state(self, flow: str) -> None:
        fields = self._fields[flow]
        states = {fields[f"state:{step}"] for step in _steps(fields) if fields.get("on_death") != str(step)}
        has_dead = any(fields[f"ends:{step}"].split()[1] != "0" for step in _steps(fields))
        if fields["state"] in FINAL:
            return
        if states <= {"succeeded"}:
            self._set_state(flow, "succeeded")
        elif states <= {"succeeded", "failed", "skipped"}:
            self._set_state(flow, "failed")
        elif has_dead and fields["on_dead"] != "go_on":
            self._set_state(flow, "blocked" if fields["on_dead"] == "block" else "cancelled")

    def _set_state(self, flow: str, state: str) -> None:
        fields = self._fields[flow]
        if fields["state"] != state:
            fields["state"] = state
            signal = signals.workflow_blocked if state == "blocked" else signals.workflow_ended
            signal.send_robust(WorkflowStore, workflow_id=flow, name=fields["name"])


def _steps(fields: dict[str, str]) -> range:
    return range(int(fields["steps"]))


def _shifted(texts: str, by: int) -> str:
    """Numbers of steps, with an "e" or without, that count from another one."""
    return re.sub(r"\d+", lambda number: str(int(number[0]) + by), texts)


def _step_with(fields: dict[str, str], number: int) -> int:
    """The step with this member."""
    return max(step for step in _steps(fields) if int(fields[f"first:{step}"]) <= number and _size(fields, step))


def _size(fields: dict[str, str], step: int) -> int:
    return int(fields[f"size:{step}"])
