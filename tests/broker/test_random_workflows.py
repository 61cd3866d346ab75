"""Random fates of the jobs of a workflow in two queues: after each of them it is what a model of it says."""

from __future__ import annotations

import random
import re

import pytest

from django_rtq.broker.workflows import set_bits
from django_rtq.inspector.jobs.undo import new_token
from tests.support import sweeps
from tests.support.jobs import QUEUE, settlement
from tests.support.nightly import IS_NIGHTLY
from tests.support.workflows import FLOW, begun_flow, claim_members, fields_of

QUEUES = (QUEUE, "low")
# 1 and 2 wait for 0, 2 only for its end; 3 for both, 4 for the end of 3, and 5 for nobody.
STEPS = (
    {"size": 3, "next": "1 2e"},
    {"size": 2, "after": "0", "next": "3", "queue": "low"},
    {"size": 1, "after": "0e", "next": "3"},
    {"size": 2, "after": "1 2", "next": "4e"},
    {"size": 1, "after": "3e", "queue": "low"},
    {"size": 1},
)
ACTS = 40
FINAL = ("succeeded", "failed", "cancelled")
ENDS = ("done", "dead", "gone")


class Model:
    """What is known of the members, and what follows for the steps."""

    def __init__(self, on_dead: str) -> None:
        self.on_dead = on_dead
        self.fates: dict[int, str] = {}  # number of a member -> done, dead, gone; others are open
        self.steps = ["waiting"] * len(STEPS)
        self.state = "running"
        self.first = [sum(step["size"] for step in STEPS[:number]) for number in range(len(STEPS))]
        self.update()

    def ends(self, step: int) -> dict[str, set[int]]:
        places = range(STEPS[step]["size"])
        return {
            how: {at for at in places if self.fates.get(self.first[step] + at) == how}
            for how in ("done", "dead", "gone")
        }

    def update(self) -> None:
        """Bring all steps up to date, in the order of their edges."""
        if self.state in FINAL:
            return
        if self.on_dead == "cancel" and "dead" in self.fates.values():
            self.state = "cancelled"
            return
        for number, step in enumerate(STEPS):
            before = [(int(other), how) for other, how in re.findall(r"(\d+)(e?)", step.get("after", ""))]
            states = [(self.steps[other], how) for other, how in before]
            if self.steps[number] in ("waiting", "skipped"):
                if any(state in ("failed", "skipped") and not how for state, how in states):
                    self.steps[number] = "skipped"
                elif all(state in (*FINAL, "skipped") for state, _ in states):
                    self.steps[number] = "started"
                else:
                    self.steps[number] = "waiting"
            if self.steps[number] in ("started", "failed"):
                ends = self.ends(number)
                gone = len(ends["gone"]) + (len(ends["dead"]) if self.on_dead == "go_on" else 0)
                is_over = len(ends["done"]) + gone == step["size"]
                self.steps[number] = "started" if not is_over else "failed" if gone else "succeeded"
        if all(state in (*FINAL, "skipped") for state in self.steps):
            self.state = "succeeded" if set(self.steps) == {"succeeded"} else "failed"
        else:
            self.state = "blocked" if self.on_dead == "block" and "dead" in self.fates.values() else "running"


class Run:
    """A workflow in Redis, the model, and where its jobs are."""

    def __init__(self, broker, inspector, dice, on_dead):
        self.broker, self.inspector, self.dice, self.model = broker, inspector, dice, Model(on_dead)
        self.running, self.dead, self.aside = [], [], []  # (queue, job)
        self.workers = 0
        begun_flow(broker, *STEPS, on_dead=on_dead)

    def act(self):
        acts = [self.claim, self.claim, self.end, self.end, self.end, self.crash, self.requeue, self.discard]
        self.dice.choice([*acts, self.restore, self.move, self.cancel_waiting])()
        if self.dice.randrange(2):
            self.compare()

    def compare(self):
        self.broker.workflows.sweep(QUEUES)
        fields = fields_of(self.broker)
        found = []
        for step in range(len(STEPS)):
            bitmaps = self.broker.workflows.bitmaps(FLOW, step, *ENDS)
            found.append({how: set(set_bits(bits)) for how, bits in zip(ENDS, bitmaps, strict=True)})
        assert found == [self.model.ends(step) for step in range(len(STEPS))]
        assert fields["state"] == self.model.state
        if self.model.state != "cancelled":
            assert [fields[f"state:{step}"] for step in range(len(STEPS))] == self.model.steps

    def note(self, job, how):
        self.model.fates[int(job.id[-6:], 16)] = how
        self.model.update()

    def pick(self, jobs):
        return jobs.pop(self.dice.randrange(len(jobs))) if jobs else (None, None)

    def claim(self):
        queue = self.dice.choice(QUEUES)
        self.workers += 1
        worker = f"w{self.workers}"
        self.running += [((queue, worker), job) for job in claim_members(self.broker, 1, worker=worker, queue=queue)]

    def end(self):
        place, job = self.pick(self.running)
        if job:
            verb = self.dice.choice(["ack", "ack", "ack", "bury", "expire", "release"])
            self.broker.settle(place[1], place[0], settlement(verb, job))
            if verb == "bury":
                self.dead.append((place[0], job))
            if verb != "release":
                self.note(job, {"ack": "done", "bury": "dead", "expire": "gone"}[verb])

    def crash(self):
        place, job = self.pick(self.running)
        if job:
            self.broker.reclaim_child(place[0], place[1], [])

    def requeue(self):
        queue, job = self.pick(self.dead)
        if job:
            assert self.inspector.requeue(queue, [job.id]) == [job.id]
            self.note(job, "open")

    def discard(self):
        queue, job = self.pick(self.dead)
        if job:
            token = new_token("discard")
            assert self.inspector.discard(queue, [job.id], undo=token) == [job.id]
            self.aside.append(((queue, token), job))
            self.note(job, "gone")

    def restore(self):
        place, job = self.pick(self.aside)
        if job:
            sweeps.run(self.inspector, "restore", queues=[place[0]], undo=place[1])
            self.dead.append((place[0], job))
            self.note(job, "dead")

    def move(self):
        queue, job = self.pick(self.dead)
        if job:
            self.inspector.job_mover.move(job.id, QUEUES[queue == QUEUE], queue)
            self.note(job, "open")

    def cancel_waiting(self):
        if not self.dice.randrange(8):
            queue = self.dice.choice(QUEUES)
            for job_id in sweeps.run(self.inspector, "cancel", queues=[queue], states=["queued"]).done:
                self.model.fates[int(job_id[-6:], 16)] = "gone"
            self.model.update()


@pytest.mark.parametrize("on_dead", ["block", "go_on"])
@pytest.mark.parametrize("seed", range(200 if IS_NIGHTLY else 12))
def test_it_is_what_the_model_says(redis, broker, inspector, seed, on_dead):
    run = Run(broker, inspector, random.Random(f"{seed} {on_dead}"), on_dead)

    for _ in range(ACTS):
        run.act()

    run.compare()
