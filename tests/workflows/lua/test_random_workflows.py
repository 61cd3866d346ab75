"""Random fates of the jobs of a workflow in two queues: after each of them it is what a model of it says, and each live
job is in one place, under the one id that it ever had."""

import random
import re
from collections import defaultdict

import pytest

from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import is_member
from django_rtq.workflows import workflow_store
from django_rtq.workflows.steps.store import Holder
from django_rtq.workflows.store import set_bits
from tests.protocol.model.keyspace import problems, read_keyspace
from tests.protocol.model.step_calls import DONE, read_steps, write_step
from tests.support import sweeps
from tests.support.console_steps import requeue_elsewhere
from tests.support.jobs import QUEUE, settlement
from tests.support.nightly import IS_NIGHTLY
from tests.support.workflows import FLOW, begun_flow, fields_of

QUEUES = (QUEUE, "low")
# 1 and 2 wait for 0, 2 only for its end; 3 for both, 4 for the end of 3, 5 for nobody, and 9 for 5. Some are empty.
STEPS = (
    {"size": 3, "next": "1 2e"},
    {"size": 2, "after": "0", "next": "3", "queue": "low"},
    {"size": 1, "after": "0e", "next": "3"},
    {"size": 2, "after": "1 2", "next": "4e"},
    {"size": 1, "after": "3e", "queue": "low"},
    {"size": 1, "next": "9"},
    *({"size": 0} for _ in range(3)),  # so that those that are added begin with the same number, and are the tenth
    {"size": 0, "after": "5"},
)
ACTS = 60
ROUNDS = 50  # in which all jobs come to their ends
FINAL = ("succeeded", "failed", "cancelled")
ENDS = ("done", "dead", "gone")
# What a member adds: a step of two jobs, and one that waits for it.
ADDED = ["t", QUEUE, 2, 0, "", "0", "", "1", "t", "low", 1, 2, "", "0", "0", ""]
CALL = "0 3    \n{}\n"


class Model:
    """What is known of the members, and what follows for the steps."""

    def __init__(self, on_dead: str) -> None:
        self.on_dead = on_dead
        self.fates: dict[int, str] = {}  # number of a member -> done, dead, gone; others are open
        self.steps = [dict(step) for step in STEPS]
        self.states = ["waiting"] * len(STEPS)
        self.state = "running"
        self.update()

    def numbers(self, step: int) -> range:
        """Of its members."""
        first = sum(other["size"] for other in self.steps[:step])
        return range(first, first + self.steps[step]["size"])

    def ends(self, step: int) -> dict[str, set[int]]:
        numbers = self.numbers(step)
        return {how: {place for place, n in enumerate(numbers) if self.fates.get(n) == how} for how in ENDS}

    def add(self, number: int) -> None:
        """A member has added steps: what waits for its own step waits for them, too."""
        own = next(step for place, step in enumerate(self.steps) if number in self.numbers(place))
        new, following = len(self.steps), own.get("next", "")
        self.steps += [{"size": 2, "next": f"{new + 1}"}, {"size": 1, "after": f"{new}", "next": following}]
        self.states += ["waiting", "waiting"]
        for follower, how in re.findall(r"(\d+)(e?)", following):
            self.steps[int(follower)]["after"] += f" {new + 1}{how}"
        self.update()

    def update(self) -> None:
        """Bring all steps up to date, until nothing follows from it any more."""
        if self.state in FINAL:
            return
        if self.on_dead == "cancel" and "dead" in self.fates.values():
            self.state = "cancelled"
            return
        before: list[str] = []
        while before != self.states:
            before = list(self.states)
            for number in range(len(self.steps)):
                self._update_step(number)
        if all(state in (*FINAL, "skipped") for state in self.states):
            self.state = "succeeded" if set(self.states) == {"succeeded"} else "failed"
        else:
            self.state = "blocked" if self.on_dead == "block" and "dead" in self.fates.values() else "running"

    def _update_step(self, number: int) -> None:
        step = self.steps[number]
        edges = [(self.states[int(other)], how) for other, how in re.findall(r"(\d+)(e?)", step.get("after", ""))]
        if self.states[number] == "waiting":
            if any(state in ("failed", "skipped") and not how for state, how in edges):
                self.states[number] = "skipped"
            elif all(state in (*FINAL, "skipped") for state, _ in edges):
                self.states[number] = "started"
        if self.states[number] == "started":
            ends = self.ends(number)
            gone = len(ends["gone"]) + (len(ends["dead"]) if self.on_dead == "go_on" else 0)
            is_over = len(ends["done"]) + gone == step["size"]
            self.states[number] = "started" if not is_over else "failed" if gone else "succeeded"


class Run:
    """A workflow in Redis, the model, and what is known of its jobs. Where they are, Redis says."""

    def __init__(self, redis, broker, readers, dice, on_dead):
        self.redis, self.broker, self.readers, self.dice = redis, broker, readers, dice
        self.model = Model(on_dead)
        self.ids = defaultdict(set)  # number of a member -> all ids that it ever had
        self.memory = defaultdict(dict)  # id -> what it remembers: fields, without their times
        self.waits = {}  # id -> number of the event for which it waits, or has waited last
        self.added = set()  # ids of members that have added steps
        self.workers = 0
        begun_flow(broker, *STEPS, on_dead=on_dead)

    def act(self):
        self.places()  # whatever happens, all ids that there are have been seen before
        acts = [self.claim, self.claim, self.claim, self.end, self.end, self.end, self.crash, self.remember, self.add]
        acts += [self.suspend, self.suspend, self.send, self.run_now, self.requeue, self.requeue, self.discard]
        acts += [self.cancel, self.sometimes(self.purge)]
        self.dice.choice([*acts, self.sometimes(self.cancel_queued), self.sometimes(self.cancel_all)])()
        if self.dice.randrange(2):
            self.compare()

    def sometimes(self, act):
        return act if not self.dice.randrange(6) else self.claim

    # -- what there is

    def places(self):
        """Each live job is in one place, and has the one id that it ever had. Kind of place -> queue, worker, id."""
        keyspace, places = read_keyspace(self.redis), defaultdict(list)
        for queue in QUEUES:
            tag = f"{{rtq:{queue}}}:"
            assert problems(keyspace, tag) == []
            jobs, asked = (keyspace.get(tag + name, {}) for name in ("jobs", "cancel_requests"))
            for name in [name for name in keyspace if name.startswith(tag)]:
                kind, _, rest = name.removeprefix(tag).partition(":")
                if kind in ("jobs", "scheduled", "dead", "lane", "running"):
                    for job_id in filter(is_member, jobs.keys() & set(keyspace[name])):
                        place = "asked" if kind == "running" and job_id in asked else kind
                        places[place].append((queue, rest, job_id))
        for jobs in places.values():  # as they are picked by chance, their order is the same each time
            jobs.sort(key=lambda job: (job[0], number_of(job[2])))
        ids = [job_id for _, _, job_id in places["jobs"]]
        for job_id in ids:
            self.ids[number_of(job_id)].add(job_id)
        assert len(ids) == len(set(ids)), "a job is in both queues"
        assert [ids for ids in self.ids.values() if len(ids) > 1] == [], "a member has two ids"
        return places

    def compare(self):
        workflow_store(self.broker).sweep(QUEUES)
        self.places()
        fields, steps = fields_of(self.broker), range(len(self.model.steps))
        found = []
        for step in steps:
            bitmaps = workflow_store(self.broker).bitmaps(FLOW, step, *ENDS)
            found.append({how: set(set_bits(bits)) for how, bits in zip(ENDS, bitmaps, strict=True)})
        assert found == [self.model.ends(step) for step in steps]
        assert fields["state"] == self.model.state
        if self.model.state != "cancelled":
            assert [fields[f"state:{step}"] for step in steps] == self.model.states

    def note(self, how, *ids):
        """How these ended: the workflow has heard of it."""
        was_over = self.model.state in FINAL
        self.model.fates |= {number_of(job_id): how for job_id in ids}
        self.model.update()
        for job_id in ids if how in ("done", "gone") else ():
            self.memory.pop(job_id, None)
        if self.model.state == "cancelled" and not was_over:
            self.after_cancelling()

    def after_cancelling(self):
        """Whoever waits is gone, and whoever runs was asked to stop."""
        workflow_store(self.broker).cancel_members(FLOW)
        places = self.places()
        assert not places["lane"] + places["scheduled"] + places["running"]
        live = {number_of(job_id) for _, _, job_id in places["jobs"]}
        over = {number for number, how in self.model.fates.items() if how in ENDS}
        self.model.fates |= dict.fromkeys(self.ids.keys() - live - over, "gone")

    def pick(self, *kinds):
        """Queue, worker and id of a job in one of these places."""
        places = self.places()
        jobs = [job for kind in kinds for job in places[kind]]
        return self.dice.choice(jobs) if jobs else (None, None, None)

    # -- by workers

    def claim(self):
        queue = self.dice.choice(QUEUES)
        self.workers += 1
        worker = f"w{self.workers}"
        self.broker.sign_on([queue], worker)
        for part in self.broker.claim(worker, [queue], 1).claimed:
            for job_id in map(bytes.decode, part.ids):
                assert self.remembered(queue, worker, job_id) == self.memory[job_id]

    def remembered(self, queue, worker, job_id):
        """What a run that begins reads, without the times."""
        fields = read_steps(self.broker, self.holder(queue, worker, job_id)).fields
        texts = {name: text.decode() for name, text in fields.items() if name.startswith(("step ", "event "))}
        return {name: text.partition(" ")[2] if name.startswith("event ") else text for name, text in texts.items()}

    def holder(self, queue, worker, job_id):
        held = self.redis.hget(self.broker.keys.of(queue).running(worker), job_id)
        return Holder(queue, job_id, worker, int(held.split()[1]))

    def end(self):
        self.end_run(
            *self.pick("running", "asked"),
            self.dice.choice(["ack", "ack", "ack", "bury", "expire", "release", "retry"]),
        )

    def end_run(self, queue, worker, job_id, verb):
        if job_id:
            is_asked = (queue, worker, job_id) in self.places()["asked"]
            self.broker.settle(worker, queue, settlement(verb, Job(job_id)))
            how = {"ack": "done", "bury": "dead", "expire": "gone"}.get(verb, "open")
            self.note("gone" if is_asked and verb != "ack" else how, job_id)

    def crash(self):
        queue, worker, job_id = self.pick("running", "asked")
        if job_id:
            is_asked = (queue, worker, job_id) in self.places()["asked"]
            guilty = [job_id] * self.dice.randrange(2)
            ((taken, state),) = self.broker.reclaim_child(queue, worker, guilty)
            assert (taken, is_asked) == (job_id, state == "cancelled")
            self.note({"cancelled": "gone", "dead": "dead", "queued": "open"}[state], job_id)

    def remember(self):
        queue, worker, job_id = self.pick("running", "asked")
        if job_id:
            name = f"step {self.dice.randrange(3)}"
            assert write_step(self.broker, self.holder(queue, worker, job_id), name)
            self.memory[job_id][name] = DONE

    def suspend(self):
        """It waits for an event, or, with no name, sleeps."""
        queue, worker, job_id = self.pick("running", "asked")
        if job_id:
            is_asked = (queue, worker, job_id) in self.places()["asked"]
            last = self.waits.get(job_id, 0)
            if last and f"event {last} go" not in self.memory[job_id] and not is_asked:
                self.memory[job_id][f"event {last} go"] = ""  # the wait before has timed out
            self.waits[job_id] = last + 1
            report = Report("suspend", job_id, 60_000, f"0 {last} {last + 1} go")
            assert self.broker.settle(worker, queue, Settlement(reports=[report])) == []
            self.note("gone" if is_asked else "open", job_id)

    def add(self):
        queue, worker, job_id = self.pick("running")
        if job_id and len(self.added) < 2:
            holder, parts = self.holder(queue, worker, job_id), [("0:0", CALL * 2), ("1:0", CALL)]
            answer, _ = workflow_store(self.broker).add(holder, "shape", ADDED, parts)
            assert answer == ("over" if self.model.state in FINAL else "added" if job_id in self.added else "ok")
            if answer == "ok":
                self.added.add(job_id)
                self.model.add(number_of(job_id))

    # -- by people

    def send(self):
        queue, _, job_id = self.pick("scheduled")
        if job_id and self.is_waiting(queue, job_id):
            JobAccess(self.broker).send(job_id, "go", 7, queue=queue)
            self.memory[job_id][f"event {self.waits[job_id]} go"] = "7"
            assert (queue, job_id) in [(place[0], place[2]) for place in self.places()["lane"]]

    def is_waiting(self, queue, job_id):
        keys = self.broker.keys.of(queue)
        return job_id in self.waits and self.redis.zscore(keys.retrying, job_id) is None

    def run_now(self):
        queue, _, job_id = self.pick("scheduled")
        if job_id:
            self.readers.actions.run_now(job_id, queue)

    def requeue(self):
        queue, _, job_id = self.pick("dead")
        if job_id:
            target = self.dice.choice(QUEUES)
            if target == queue:
                assert self.readers.actions.done("requeue", queue, [job_id]) == [job_id]
            else:
                assert requeue_elsewhere(self.broker, [JobHandle(job_id, queue)], target, queue=queue) == [job_id]
            self.note("open", job_id)

    def discard(self):
        queue, _, job_id = self.pick("dead")
        if job_id:
            assert self.readers.actions.done("discard", queue, [job_id]) == [job_id]
            self.note("gone", job_id)

    def purge(self):
        queue = self.dice.choice(QUEUES)
        waiting = [
            job_id for kind in ("lane", "scheduled") for place, _, job_id in self.places()[kind] if place == queue
        ]
        sweeps.run(self.readers, "purge", queues=[queue])
        self.note("gone", *waiting)

    def cancel(self):
        queue, _, job_id = self.pick("lane", "scheduled", "running")
        if job_id:
            answer = JobAccess(self.broker).cancel(job_id, queue)
            self.note("gone" if answer == "cancelled" else "open", job_id)

    def cancel_queued(self):
        queue = self.dice.choice(QUEUES)
        self.note("gone", *sweeps.run(self.readers, "cancel", queues=[queue], states=["queued"]).done)

    def cancel_all(self):
        assert workflow_store(self.broker).cancel(FLOW) == ("over" if self.model.state in FINAL else "cancelled")
        if self.model.state not in FINAL:
            self.model.state = "cancelled"
            self.after_cancelling()

    # -- the end

    def finish(self):
        """All jobs end. Nothing is left open, and each step that has started did so with each of its members, once."""
        for _ in range(ROUNDS):
            places = self.places()
            for job in (*places["running"], *places["asked"]):
                self.end_run(*job, "ack")
            for queue, _, job_id in self.places()["scheduled"]:
                self.readers.actions.run_now(job_id, queue)
            for queue, _, job_id in self.places()["dead"]:
                self.readers.actions.done("requeue", queue, [job_id])
                self.note("open", job_id)
            for _ in range(3):
                self.claim()
            self.compare()
            if not self.places()["jobs"]:
                break
        keyspace, home = read_keyspace(self.redis), f"{{rtq:{QUEUE}}}:"
        left = [name.removeprefix(home).partition(":")[0] for name in keyspace if name.startswith(home)]
        assert self.model.state in FINAL
        assert {"open_steps", "dead_steps", "starting_parts", "unstarted"}.isdisjoint(left)
        assert self.model.state == "cancelled" or "step_waits" not in left
        assert not [name for name in keyspace if name.endswith(":ended_members")]
        assert not [name for name, fields in keyspace.items() if ":steps:" in name and "aside" not in fields]
        for step, state in enumerate(self.model.states):
            numbers = {number for number in self.model.numbers(step) if number in self.ids}
            expected = set(self.model.numbers(step)) if state in ("started", "succeeded", "failed") else set()
            assert numbers == expected or (self.model.state == "cancelled" and not numbers)


class Job:
    """A job of which only the id is known."""

    def __init__(self, job_id):
        self.id = job_id


def number_of(job_id):
    return int(job_id[-6:], 16)


@pytest.mark.parametrize("on_dead", ["block", "go_on", "cancel"])
@pytest.mark.parametrize("seed", range(200 if IS_NIGHTLY else 12))
def test_it_is_what_the_model_says(redis, broker, readers, seed, on_dead):
    run = Run(redis, broker, readers, random.Random(f"{seed} {on_dead}"), on_dead)

    for _ in range(ACTS):
        run.act()

    run.compare()
    run.finish()
