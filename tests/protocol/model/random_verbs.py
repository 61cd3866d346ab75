"""A hypothesis state machine: random verbs, by workers that run, lag behind and crash, and by operators."""

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import RuleBasedStateMachine, get_state_machine_test, initialize, precondition, rule

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.messages import NewJob
from tests.protocol.model.drain import drain
from tests.protocol.model.outcomes import LINE
from tests.protocol.model.parallel_run import QUEUES, ParallelRun
from tests.protocol.model.queries import lanes_of
from tests.protocol.model.state import LEASE_MS
from tests.protocol.model.strategies import (
    BODIES,
    CHANGED,
    ERROR,
    EVENTS,
    KEEPS,
    PAUSES,
    PROGRESS,
    TASKS,
    TORN,
    VALUES,
    WAITS,
    clients_aside,
    holdings,
    indexes,
    limit_entries,
    limits,
    most_purged,
    new_jobs,
    orders,
    purged_clients,
    queues,
    rarely,
    settlements,
    several,
    twice,
)

NO_LIMITS: Mapping[str, str] = {}


class QueueMachine(RuleBasedStateMachine):
    """Two queues, up to a dozen workers, any number of people.

    Few rules that do much: hypothesis leaves out some of them in every run, and little happens to jobs that nobody
    enqueues, claims or settles.
    """

    def __init__(self, redis: Any, broker: Broker, beginning: Mapping[str, str]) -> None:
        super().__init__()
        self.beginning = beginning  # the first limits of a queue
        self.parallel = ParallelRun(redis, broker)
        self.known: dict[str, list[str]] = {name: [] for name in QUEUES}  # every id that ever was
        self.workers: list[str] = []
        self.numbers = itertools.count()

    @initialize(jobs=new_jobs, more=new_jobs, wanted=st.integers(1, 6))
    def begin(self, jobs: list[Any], more: list[Any], wanted: int) -> None:
        if self.beginning:
            self.parallel.change_limits("mail", self.beginning)
        for queue, new in (("mail", jobs), ("bulk", more), ("mail", more)):
            self.enqueue(queue, new, [], 1)
        for _ in range(3):
            self.come_or_go(0, QUEUES, "come")
        for worker in self.workers[1:]:
            self.parallel.claim(worker, QUEUES, wanted)

    # -- by whoever has work to be done

    @rule(
        queue=queues,
        jobs=new_jobs,
        known=st.lists(indexes, max_size=2),
        times=twice,
        together=rarely,
        held=st.lists(st.none() | holdings, max_size=2),
    )
    def enqueue(
        self,
        queue: str,
        jobs: list[Any],
        known: list[int],
        times: int,
        together: bool = False,
        held: list[Any] | None = None,
    ) -> None:
        """New ones, some that are alike, and some whose ids are known already."""
        new = [self.new_job(job, own) for job, own in zip(jobs, itertools.cycle(held or [None]), strict=False)]
        new += [new[0]._replace(id=job_id) for job_id in self._pick(self.known[queue], known)]
        self.known[queue] += [job.id for job in new if job.id not in self.known[queue]]
        for _ in range(times):
            self.parallel.enqueue(queue, new, together=together)

    # -- by workers

    @rule(worker=indexes, order=orders, verb=st.sampled_from(("come", "come", "go")))
    def come_or_go(self, worker: int, order: tuple[str, ...], verb: str) -> None:
        if verb == "go":
            self.parallel.sign_off(self._worker(worker), order)
        elif len(self.workers) < 12:
            self.workers.append(f"w{len(self.workers)}")
            self.parallel.sign_on(self.workers[-1], order)

    @rule(
        worker=indexes,
        order=orders,
        wanted=st.integers(1, 5),
        idle=st.sampled_from((1, 1, 4, 9, 0)),
        aside=clients_aside,
    )
    def claim(self, worker: int, order: tuple[str, ...], wanted: int, idle: int, aside: list[tuple[str, str]]) -> None:
        self.parallel.claim(self._worker(worker), order, wanted, idle=idle, aside=aside)

    @precondition(lambda self: self.holders)
    @rule(worker=indexes, outcomes=settlements, wait=st.sampled_from((0, 3000)), order=orders, then=st.integers(0, 4))
    def settle(self, worker: int, outcomes: list[Any], wait: int, order: tuple[str, ...], then: int) -> None:
        """And claim, or else settle once more."""
        name = self._holder(worker)
        plan = {queue: self._plan(self._held(queue, name), outcomes, wait) for queue in QUEUES}
        self.parallel.fetch(name, plan, order, wanted=then)
        if not then:
            self.parallel.fetch(name, plan)

    @rule(worker=indexes, queue=queues, outcomes=settlements)
    def settle_whatever(self, worker: int, queue: str, outcomes: list[Any]) -> None:
        """What others hold, what is over, what is not there."""
        self.parallel.fetch(self._worker(worker), {queue: self._plan(self.known[queue], outcomes, 0)})

    @precondition(lambda self: self.holders)
    @rule(
        worker=indexes,
        queue=queues,
        times=st.integers(1, 6),
        ending=st.sampled_from(("retry", "bury", "crash", "suspend")),
    )
    def fail_again_and_again(self, worker: int, queue: str, times: int, ending: str) -> None:
        """Jobs fail, crash their worker, or wait for an event, as soon as they are claimed."""
        name = self._holder(worker)
        for number in range(times):
            if ending == "crash":
                self.parallel.reclaim_child(queue, name, self._held(queue, name)[:1])
                self.parallel.sign_on(name)  # a real one would take a new name
            else:
                verb = "suspend" if ending == "suspend" else "retry"
                for job_id in self._held(queue, name)[:1]:
                    self.parallel.record_step(queue, name, job_id, f"step {number % 2}", PROGRESS)
                plan = self._plan(self._held(queue, name), [(verb, True, number + place) for place in range(3)], 0)
                self.parallel.fetch(name, {queue: plan})
                self.parallel.promote(queue)
            self.parallel.claim(name, (queue,), 3)
        if ending == "bury":
            plan = self._plan(self._held(queue, name), [("bury", True, place) for place in range(3)], 0)
            self.parallel.fetch(name, {queue: plan})

    # -- by supervisors and schedulers

    @precondition(lambda self: self.parallel.can_advance)
    @rule(
        ms=st.sampled_from(PAUSES),
        renewing=st.lists(indexes, max_size=2),
        is_outage=st.booleans(),
        order=orders,
        limit=limits,
        pause_ms=st.sampled_from((0, LEASE_MS // 2 + 1)),
    )
    def time_passes(
        self, ms: int, renewing: list[int], is_outage: bool, order: tuple[str, ...], limit: int, pause_ms: int
    ) -> None:
        """While somebody lives; half a lease of silence is an outage."""
        while ms > 0 and not is_outage:
            self.parallel.advance(min(ms, LEASE_MS // 2))
            self.parallel.renew(self._pick(self.workers, renewing), order, pause_ms)
            ms -= LEASE_MS // 2
        self.parallel.advance(max(ms, 0))
        if not is_outage:
            self.parallel.reclaim(order[0], limit)

    @rule(
        queue=queues,
        verb=st.sampled_from(("reclaim", "reclaim", "promote", "promote", "trim")),
        limit=limits,
        times=twice,
    )
    def sweep(self, queue: str, verb: str, limit: int, times: int) -> None:
        for _ in range(times):
            getattr(self.parallel, verb)(queue, limit)

    @rule(queue=queues, worker=indexes, guilty=st.lists(indexes, max_size=2), times=twice, limit=limits)
    def child_dies(self, queue: str, worker: int, guilty: list[int], times: int, limit: int) -> None:
        name = self._holder(worker) if self.holders else self._worker(worker)
        held = self._held(queue, name)
        for _ in range(times):
            self.parallel.reclaim_child(queue, name, self._pick(held, guilty), limit)

    # -- by people

    @precondition(lambda self: any(model.step_jobs for model in self.parallel.models.values()))
    @rule(queue=queues, places=several, number=st.integers(0, 5), times=twice)
    def send(self, queue: str, places: list[int], number: int, times: int) -> None:
        """Events, to jobs that wait for one and to others."""
        waiting = sorted(job_id for job_id, entry in self.parallel.models[queue].step_jobs.items() if entry)
        job_ids = [*self._pick(waiting, places), *self._pick(self.known[queue], places[:1])]
        for job_id in job_ids * times:
            for token in range(number, number + times):
                self.parallel.send(queue, job_id, EVENTS[number % 3], f"t{token}", VALUES[number % 3])

    @rule(queue=queues, places=several, times=twice, terminate=st.booleans())
    def cancel(self, queue: str, places: list[int], times: int, terminate: bool) -> None:
        for job_id in self._pick(self.known[queue], places) * times:
            self.parallel.cancel(queue, job_id, terminate=terminate)
            self.parallel.find(queue, job_id)

    @rule(queue=queues, worker=indexes, places=several)
    def report_progress(self, queue: str, worker: str, places: list[int]) -> None:
        """What the worker holds, and what it does not."""
        name = self._holder(worker) if self.holders else self._worker(worker)
        for job_id in [*self._pick(self._held(queue, name), places), *self._pick(self.known[queue], places[:1])]:
            self.parallel.report_progress(queue, name, job_id, PROGRESS)
            self.parallel.append_log(queue, name, job_id, f"a-{places[0] + 1}", LINE, over_ms=3_600_000)
            self.parallel.record_step(queue, name, job_id, f"step {places[0] % 2}", PROGRESS)

    @precondition(lambda self: any(model.dead for model in self.parallel.models.values()))
    @rule(queue=queues, verb=st.sampled_from(("requeue", "requeue", "change", "discard")), places=several, times=twice)
    def look_after_the_dead(self, queue: str, verb: str, places: list[int], times: int) -> None:
        dead = sorted(self.parallel.models[queue].dead)
        ids = list(dict.fromkeys([*self._pick(dead, places), *self._pick(self.known[queue], places[:1])]))
        latest = self.parallel.clock.now - places[0] % 2
        for _ in range(times):
            if verb == "change":
                self.parallel.requeue_changed(queue, latest, ids[0], CHANGED)
            else:
                getattr(self.parallel, verb)(queue, ids)

    @rule(queue=queues, places=several, times=twice, worker=indexes)
    def take_it_in_hand(self, queue: str, places: list[int], times: int, worker: int) -> None:
        """Jobs run before their time, and what a worker holds is taken from it, if its lease is over."""
        scheduled = sorted(self.parallel.models[queue].scheduled)
        for job_id in [*self._pick(scheduled, places), *self._pick(self.known[queue], places[:1])] * times:
            self.parallel.run_now(queue, job_id)
        for _ in range(times):
            self.parallel.release_worker(queue, self._holder(worker) if self.holders else self._worker(worker))

    @rule(queue=queues, verb=st.sampled_from(("pause", "resume", "resume")), task=st.sampled_from(("", *TASKS)))
    def pause_or_resume(self, queue: str, verb: str, task: str) -> None:
        getattr(self.parallel, f"{verb}_task" if task else verb)(queue, *filter(None, [task]))

    @rule(queue=queues, entries=st.lists(limit_entries, min_size=1, max_size=2))
    def change_limits(self, queue: str, entries: list[tuple[str, str]]) -> None:
        self.parallel.change_limits(queue, dict(entries))

    @rule(queue=queues, limit=most_purged, client=purged_clients, forgets=st.booleans())
    def purge(self, queue: str, limit: int, client: str | None, forgets: bool) -> None:
        self.parallel.purge(queue, limit, client)
        _ = forgets and self.parallel.forget(queue, LEASE_MS * (limit - 1), discard=limit > 2)

    @rule(queue=queues, places=several, others=several, times=twice)
    def requeue_elsewhere(self, queue: str, places: list[int], others: list[int], times: int) -> None:
        """Some that are dead, and some that ever were."""
        (target,) = set(QUEUES) - {queue}
        dead = sorted(self.parallel.models[queue].dead)
        job_ids = [*self._pick(dead, places), *self._pick(self.known[queue], others[:1])]
        for _ in range(times):
            self.parallel.requeue_elsewhere(queue, job_ids, target)
        for job_id in job_ids:
            self.parallel.find(queue, job_id)
        self.known[target] += [job_id for job_id in dict.fromkeys(job_ids) if job_id not in self.known[target]]

    # -- by accident

    @rule(
        queue=queues,
        token=st.sampled_from(("work_signal", "due_signal")),
        start=st.integers(0, 2),
        limit=st.integers(1, 3),
    )
    def take_token(self, queue: str, token: str, start: int, limit: int) -> None:
        self.parallel.accidents.take_token(queue, token)
        self.parallel.audit(queue, start, limit)

    @rule(queue=queues, digest=st.sampled_from(("d1", "d2")))
    def let_limit_pass(self, queue: str, digest: str) -> None:
        self.parallel.accidents.let_limit_pass(queue, digest)

    @rule(queue=queues, place=indexes, what=st.sampled_from(TORN), is_guilty=st.booleans())
    def tear_the_log(self, queue: str, place: int, what: str, is_guilty: bool) -> None:
        for worker in self._pick(self.holders, [place]) if what == "worker" else ():
            self.parallel.accidents.lose_worker(queue, worker)
        for lane in self._pick(lanes_of(self.parallel.models[queue]), [place]) if what != "worker" else ():
            if what == "turn":
                self.parallel.accidents.lose_turn(queue, lane)
            elif what == "band":
                self.parallel.accidents.lose_band(queue, lane[0])
            elif what == "index":
                self.parallel.accidents.bend_index(queue, lane[1])
            else:
                self._claim_half(queue, lane, is_guilty=is_guilty)

    def _claim_half(self, queue: str, lane: tuple[int, str], *, is_guilty: bool) -> None:
        model = self.parallel.models[queue]
        job_id = model.lanes[lane][0]
        allowed = model.jobs[job_id].max_crashes if job_id in model.jobs else 0
        # A suspect might be dead while it is in its lane: the claim that finds it there does not mind.
        if model.crashes.get(job_id, 0) < allowed:
            self.parallel.accidents.claim_half(queue, "torn", job_id, [job_id] * is_guilty)

    def teardown(self) -> None:
        """What is left comes to an end, and leaves nothing behind (I13)."""
        if self.parallel.is_sound:
            drain(self.parallel)

    # -- inside

    def new_job(self, options: tuple[Any, ...], held: tuple[Any, ...] | None) -> NewJob:
        client, band, max_crashes, due, expires, at_front, skew = options
        now, number = self.parallel.clock.now, next(self.numbers)
        job_id = f"daily-{number}" if skew is None else f"{now + skew:012x}-{number:03}"
        moments = {"past": str(now - 3000), "now": str(now), "soon": str(now + 1)}
        ready, last = moments.get(due, due), moments.get(expires, expires)
        return NewJob(job_id, band, max_crashes, client, ready, last, at_front, BODIES[number % 2], *(held or ()))

    @property
    def holders(self) -> list[str]:
        """The workers that hold jobs, in the order in which they signed on."""
        return [name for name in self.workers if any(model.running[name] for model in self.parallel.models.values())]

    def _holder(self, index: int) -> str:
        return str(self._pick(self.holders, [index])[0])

    def _held(self, queue: str, worker: str) -> list[str]:
        return sorted(self.parallel.models[queue].running[worker])

    def _worker(self, index: int) -> str:
        """One that has signed on; of four, one may be dead."""
        alive = [name for name in self.workers if name in self.parallel.models["mail"].workers]
        names = alive if alive and index % 4 else self.workers
        return names[index % len(names)]

    def _pick(self, things: Any, places: list[int]) -> list[Any]:
        """Of the last things in a list, none twice."""
        last = list(things)[-12:]
        return list(dict.fromkeys(last[place % len(last)] for place in places)) if last else []

    def _plan(self, job_ids: list[str], outcomes: list[Any], wait: int) -> dict[str, list[Any]]:
        """Verb -> its arguments for each job; none twice."""
        plan: dict[str, list[Any]] = {}
        seen = set()
        for verb, flag, place in outcomes:
            for job_id in set(self._pick(job_ids, [place])) - seen:
                seen.add(job_id)
                plan.setdefault(verb, []).append((job_id, *self._outcome(verb, flag, place, wait)))
        return plan

    def _outcome(self, verb: str, flag: bool, place: int, wait: int) -> tuple[Any, ...]:
        keep_ms = KEEPS[place % len(KEEPS)]
        return {
            "ack": (keep_ms, '{"state":"succeeded"}' if flag else ""),
            "expire": (keep_ms, '{"state":"expired"}'),
            "finish_cancel": (keep_ms, '{"state":"cancelled"}'),
            "retry": (wait, int(flag), ERROR),
            "bury": (int(flag), ERROR),
            "suspend": ((0, 3000, 20_000)[place % 3], WAITS[place % len(WAITS)]),
            "release": (),
        }[verb]


def run_randomly(
    redis: Any,
    broker: Broker,
    beginning: Mapping[str, str] = NO_LIMITS,
    *,
    examples: int,
    seeded_by: int | None = None,
    **options: Any,
) -> None:
    """So many runs of 50 rules; the same ones every time, if there is a seed.

    Hypothesis tries constants of the modules that are imported, and these depend on which tests ran before: not here.
    """
    test = get_state_machine_test(
        partial(QueueMachine, redis, broker, beginning),
        settings=settings(
            **options,
            max_examples=examples,
            stateful_step_count=50,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    if seeded_by is None:
        test()
    else:
        with mock.patch.object(HypothesisProvider, "_maybe_draw_constant", return_value=None, create=True):
            seed(seeded_by)(test)()
