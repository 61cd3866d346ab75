"""Calls each verb in Redis and in the model, and then compares all keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from django_rtq.console.nouns import Place
from django_rtq.console.reading.actions import LATEST
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.core.broker.worker_broker import Claimed
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.outcome import CANCELLED_UNRUN
from django_rtq.exceptions import JobNotFound, WrongState
from tests.protocol.model.accidents import Accidents
from tests.protocol.model.keyspace import differences, problems, read_keyspace, startable
from tests.protocol.model.outcomes import KEPT_LOGS, LIVE_MS
from tests.protocol.model.queries import VERBS, overview_of, seconds, settlement, state_in
from tests.protocol.model.queue import Queue, claim
from tests.protocol.model.remembering import EVENT_LIMITS
from tests.protocol.model.requeueing import requeue_elsewhere
from tests.protocol.model.state import DEAD_MS, LEASE_MS, RESULT_MS, Clock, Limits, lane_name
from tests.support.single_steps import promote, renew

QUEUES = ("mail", "bulk")
LONGEST_MS = 40 * 60_000  # time that may pass; a script believes `high` when it is less than an hour ahead

Plan = Mapping[str, Mapping[str, Sequence[tuple[Any, ...]]]]  # queue -> verb -> for each job its arguments


def parallel_config(url: str) -> Config:
    """Keep little, and not for long."""
    dead = {"max_dead_letters": 3, "dead_letter_days": DEAD_MS / 86_400_000}
    kept = {"max_results": 4, "result_ttl": RESULT_MS / 1000, **dead}
    return Config(redis=url, lease_seconds=LEASE_MS / 1000, queues={"bulk": {"delayed_first": True}}, **kept)


class ParallelRun:
    """Two queues and their models, at a time that stands still until `advance`."""

    def __init__(self, redis: Any, broker: Broker) -> None:
        redis.flushdb()
        self.redis, self.broker, self.readers = redis, broker, Readers(broker)
        self.place = Place(readers=self.readers)
        # From a minute ahead on, so that the server's own clock never catches up; and not near the end of a minute.
        self.clock = Clock((redis.time()[0] + 120) // 60 * 60_000)
        config = broker.config
        limits = Limits(LEASE_MS, config.max_results, config.max_dead_letters, DEAD_MS)
        self.models = {name: Queue(self.clock, limits, config.queue(name).delayed_first) for name in QUEUES}
        self._last_moment = self.clock.now + LONGEST_MS
        self._turns: dict[str, int] = {}
        self.is_sound = True
        self.woken: set[str] = set()  # queues whose token a worker has taken, and not claimed since
        self.accidents = Accidents(self)
        broker.register_queues(QUEUES)
        self.advance(0)

    # -- time

    def advance(self, ms: int) -> None:
        """Time passes: as in any script that saw it, `high` holds it."""
        self.clock.now += ms
        for name, model in self.models.items():
            model.clock_state["high"] = self.clock.now
            self.redis.hset(self.broker.keys.of(name).clock, "high", self.clock.now)
        self.check()

    @property
    def can_advance(self) -> bool:
        return self.clock.now < self._last_moment

    # -- by whoever has work to be done

    def enqueue(self, queue: str, jobs: Sequence[NewJob], *, together: bool = False) -> None:
        answers = self.models[queue].enqueue(jobs, together)
        self.same(self.broker.enqueue(queue, jobs, all_or_none=together), answers)

    # -- by workers

    def sign_on(self, worker: str, queues: Sequence[str] = QUEUES) -> None:
        for queue in queues:
            self.models[queue].sign_on(worker)
        self.same(self.broker.sign_on(queues, worker), None)

    def sign_off(self, worker: str, queues: Sequence[str] = QUEUES) -> None:
        expected = [self.models[queue].sign_off(worker) for queue in queues]
        self.same(self.broker.sign_off(queues, worker), all(expected))

    def claim(
        self,
        worker: str,
        queues: Sequence[str] = QUEUES,
        wanted: int = 1,
        *,
        idle: int = 1,
        aside: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.fetch(worker, {}, queues, wanted=wanted, idle=idle, aside=aside)

    def fetch(
        self,
        worker: str,
        plan: Plan,
        queues: Sequence[str] = (),
        *,
        wanted: int = 0,
        idle: int = 1,
        aside: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Settle and claim in one round trip. `aside`: clients of queues that get no job."""
        places = [(queues.index(name), client) for name, client in aside if name in queues]
        settlements = {queue: settlement(verbs) for queue, verbs in plan.items()}
        stale = self._settle_models(worker, plan, ack_last=wanted > 0)
        found = claim([self.models[name] for name in queues], worker, wanted, idle, places) if wanted else {}
        claims = {queues[place]: answer for place, answer in found.items()}
        fetched = self.broker.claim(worker, queues, wanted, settlements=settlements, idle=idle, aside=aside)
        for queue, (status, _) in claims.items():
            if status == "suspect":
                self._adopt_rings(queue)
        if fetched.error:
            raise fetched.error
        assert not any(settlements.values())
        self.woken.difference_update(queue for queue, (status, _) in claims.items() if status != "unknown")
        told = {part.queue: self._told(part) for part in fetched.claimed}
        self.same((sorted(fetched.stale), told), (sorted(stale), claims))

    def _settle_models(self, worker: str, plan: Plan, *, ack_last: bool) -> list[str]:
        """A claim acks in its own script, and everything else before."""
        stale = []
        for is_ack in (False, True) if ack_last else (None,):
            for queue, verbs in plan.items():
                chosen = {verb: entries for verb, entries in verbs.items() if is_ack in (None, verb == "ack")}
                stale += self._settle_model(worker, queue, chosen)
        return stale

    def _settle_model(self, worker: str, queue: str, verbs: Mapping[str, Sequence[Any]]) -> list[str]:
        model, stale = self.models[queue], []
        for verb in VERBS:
            entries = verbs.get(verb, ())
            if verb == "release":
                stale += model.release(worker, [job_id for (job_id,) in entries])
            else:
                stale += getattr(model, verb)(worker, entries) if entries else []
        return stale

    def _told(self, part: Claimed) -> tuple[str, dict[str, str]]:
        ids = [job_id.decode() for job_id in part.ids]
        model = self.models[part.queue]
        assert part.now_ms == self.clock.now
        assert [record.decode() for record in part.records] == [str(model.jobs.get(job_id)) for job_id in ids]
        attempts = {job_id: str(1 + sum(part.counts.get(i, (0, 0)))) for i, job_id in enumerate(ids)}
        assert len(attempts) == len(ids)
        return part.status, attempts

    def _adopt_rings(self, queue: str) -> None:
        """How far a claim looks behind a suspect for what was purged or cancelled is nobody's business."""
        actual, model = read_keyspace(self.redis), self.models[queue]
        for lane in [lane for lane, job_ids in model.lanes.items() if job_ids]:
            if actual.get(f"{{rtq:{queue}}}:lane:{lane_name(lane)}", [])[:1] != model.lanes[lane][:1]:
                model.paused_tasks.pass_over(lane)
        for band, ring in model.rings.items():
            there = actual.get(f"{{rtq:{queue}}}:ring:{band}", [])
            model.rings[band] = [client for client in ring if client in there or model.lanes[band, client]]
            if not model.rings[band]:
                model.bands.discard(band)
        model.signal_work()

    def report_progress(self, queue: str, worker: str, job_id: str, line: str) -> None:
        expected = self.models[queue].report_progress(worker, job_id, line)
        self.same(self._script(queue, "report_progress", job_id, line, worker=worker).decode(), expected)

    def record_step(self, queue: str, worker: str, job_id: str, step: str, text: str) -> None:
        claimed = (self.models[queue].running[worker].get(job_id, "") + " 0 0").split(" ")[1]
        expected = self.models[queue].remembering.record_step(worker, job_id, claimed, step, text)
        self.same(self._script(queue, "record_step", job_id, claimed, step, text, worker=worker).decode(), expected)

    def append_log(self, queue: str, worker: str, job_id: str, part: str, *lines: str, over_ms: int | str = "") -> None:
        self.models[queue].outcomes.append_log(worker, job_id, part, over_ms, lines)
        arguments = LIVE_MS, KEPT_LOGS, job_id, part, over_ms, len(lines), *lines
        self.same(self._script(queue, "append_log", *arguments, worker=worker), [])

    def send(self, queue: str, job_id: str, event: str, token: str, value: str) -> None:
        expected = self.models[queue].remembering.send(job_id, event, token, value)
        reply = self._script(queue, "send_event", job_id, event, token, value, *EVENT_LIMITS)
        self.same(reply.decode(), expected)

    def note_times(self, queue: str, worker: str, noted: Mapping[str, str]) -> None:
        self.models[queue].spent.note_times(worker, noted.items())
        words = [word for pair in noted.items() for word in pair]
        self.same(self._script(queue, "note_times", *words, worker=worker), [])

    # -- by supervisors and schedulers

    def renew(self, workers: Sequence[str], queues: Sequence[str] = QUEUES, pause_ms: int = 0) -> None:
        replies = [self.models[queue].renew(workers, pause_ms) for queue in queues]
        earliest = min((ms / 1000 for ms, _ in replies if ms is not None), default=None)
        unknown = set().union(*(names for _, names in replies))
        self.same(renew(self.broker, queues, workers, pause_ms=pause_ms), (earliest, unknown))

    def reclaim(self, queue: str, limit: int = 100) -> None:
        ms, taken = self.models[queue].reclaim(limit)
        self.same(self.broker.reclaim(queue, limit=limit), (seconds(ms), taken))

    def reclaim_child(self, queue: str, worker: str, guilty: Sequence[str], limit: int = AT_ONCE) -> None:
        """In as many calls as it takes."""
        expected = left, _ = self.models[queue].reclaim_child(worker, guilty, limit)
        there, *words = self._script(queue, "reclaim_child", worker, limit, "", *guilty)
        texts = [word.decode() for word in words]
        self.same((there, list(zip(texts[::2], texts[1::2], strict=True))), expected)
        if left:
            self.reclaim_child(queue, worker, guilty, limit)

    def promote(self, queue: str, limit: int = 100) -> None:
        ms, promoted = self.models[queue].promote(limit)
        self.same(promote(self.broker, queue, limit=limit), (seconds(ms), promoted))

    def promote_after(self, ms: int, limit: int = 100) -> None:
        """In the queue mail, when so much time has passed."""
        self.advance(ms)
        self.promote("mail", limit)

    def trim(self, queue: str, limit: int = 100) -> None:
        reply = self._script(queue, "trim", self.broker.config.max_dead_letters, DEAD_MS, limit)
        self.same(reply, self.models[queue].trim(limit))

    def trim_after(self, ms: int, limit: int = 100) -> None:
        self.advance(ms)
        self.trim("mail", limit)

    def audit(self, queue: str, start: int = 0, limit: int = 100) -> None:
        reply = self._script(queue, "repair_lanes", start, limit, 0)
        self.same(reply, [self.models[queue].audit(start, limit), 0])  # and no job is in no place

    # -- by people

    def pause(self, queue: str) -> None:
        self.same(self.place.queues[queue].pause(), self.models[queue].pause())

    def resume(self, queue: str) -> None:
        self.same(self.place.queues[queue].resume(), self.models[queue].resume())

    def forget(self, queue: str, idle_ms: int = 0, *, discard: bool = False) -> None:
        expected = self.models[queue].forget(idle_ms, discard=discard)
        if expected in ("forgotten", "missing"):
            self._turns.pop(queue, None)
        self.same(self._script(queue, "forget", idle_ms, "1" if discard else "").decode(), expected)

    def purge(self, queue: str, limit: int = 100, client: str | None = None) -> None:
        whose = ("all", "") if client is None else ("client", client)
        self.same(self._script(queue, "purge", limit, *whose), self.models[queue].purge(limit, client))

    def pause_task(self, queue: str, task: str, by: str = "eve") -> None:
        self.same(self._script(queue, "pause", task, by).decode(), self.models[queue].paused_tasks.pause_task(task, by))

    def resume_task(self, queue: str, task: str, limit: int = 100) -> None:
        answer, *counts = self._script(queue, "resume", task, limit)
        self.same([answer.decode(), *counts], self.models[queue].paused_tasks.resume_task(task, limit))

    def find(self, queue: str, job_id: str) -> None:
        """What is told of a job."""
        try:
            details = self.readers.find(job_id, queue)
        except JobNotFound:
            assert self._place_of(job_id) is None
            return
        assert details.queue == (queue if state_in(self.models[queue], job_id) else self._place_of(job_id))
        model = self.models[details.queue]
        assert details.state is state_in(model, job_id)
        assert details.is_stopping is (job_id in model.cancel_requests)
        assert details.failures == model.failures.get(job_id, 0)
        assert details.crashes == model.crashes.get(job_id, 0)
        assert len(details.errors) == len(model.errors.get(job_id, ()))

    def _place_of(self, job_id: str) -> str | None:
        """The first queue that knows a job."""
        return next((name for name in sorted(self.models) if state_in(self.models[name], job_id)), None)

    def cancel(self, queue: str, job_id: str, *, terminate: bool = False) -> None:
        how = "terminate" if terminate else "ask"
        expected = self.models[queue].cancel(job_id, RESULT_MS, CANCELLED_UNRUN, how)
        if expected in ("missing", "finished") and (place := self._place_of(job_id)) not in (queue, None):
            expected = self.models[place].cancel(job_id, RESULT_MS, CANCELLED_UNRUN, how)
        try:
            answer = str(JobAccess(self.broker).cancel(job_id, queue, terminate=terminate))
        except JobNotFound:
            answer = "missing"
        except WrongState as error:
            answer = next(word for word in ("is dead", "has finished") if word in str(error)).split()[-1]
        self.same(answer, "cancelled" if expected == "already" else expected)

    def requeue(self, queue: str, job_ids: Sequence[str]) -> None:
        self.same(self.readers.actions.done("requeue", queue, job_ids), self.models[queue].requeue(job_ids))

    def requeue_elsewhere(self, queue: str, job_ids: Sequence[str], target: str) -> None:
        expected = requeue_elsewhere(self.models[queue], self.models[target], job_ids)
        self.same(self._requeue(queue, target, LATEST, "", *job_ids), expected)

    def requeue_changed(self, queue: str, latest: int, job_id: str, body: str) -> None:
        expected = self.models[queue].requeue_changed(latest, job_id, body)
        self.same(self._requeue(queue, queue, latest, body, job_id), expected)

    def _requeue(self, queue: str, target: str, *arguments: int | str) -> list[str]:
        keys = [self.broker.keys.of(name) for name in (queue, target)]
        return list(map(bytes.decode, self.broker.redis.execute_one(SCRIPTS["requeue"].call_many(keys, arguments))))

    def run_now(self, queue: str, job_id: str) -> None:
        self.same(self._script(queue, "run_now", job_id).decode(), self.models[queue].run_now(job_id))

    def release_worker(self, queue: str, worker: str, limit: int = AT_ONCE) -> None:
        expected = self.models[queue].release_worker(worker, limit)
        left, *words = self._script(queue, "reclaim_child", worker, limit, "", "lapsed")
        self.same([left, *(word.decode() for word in words)], expected)

    def discard(self, queue: str, job_ids: Sequence[str]) -> None:
        self.same(self.readers.actions.done("discard", queue, job_ids), self.models[queue].discard(job_ids))

    def change_limits(self, queue: str, entries: Mapping[str, str]) -> None:
        """And let those go on that may. Limits that name no source are changed at run time."""
        entries = {name if name.startswith(("run:", "settings:")) else f"run:{name}": t for name, t in entries.items()}
        arguments = [text for entry in entries.items() for text in entry]
        self._adopt_turns(queue)
        self.same(self._script(queue, "set_limits", "", "", *arguments), self.models[queue].caps.change_limits(entries))
        if names := sorted(self.models[queue].blocked):
            self.same(self._script(queue, "check_blocked", *names), self.models[queue].caps.check_blocked(names))

    def _adopt_turns(self, queue: str) -> None:
        """Without weights only their order matters."""
        model, ring = self.models[queue], self.broker.keys.of(queue).ring
        for band, clients in model.rings.items() if not model.weights else ():
            turns = dict(self.redis.zrange(ring + str(band).encode(), 0, -1, withscores=True))
            for client in clients:
                turn = turns.get(client.encode(), 1e15)
                model.turns.pop((band, client), None)
                model.turns |= {(band, client): turn} if turn < 1e15 else {}

    # -- the comparison

    def same(self, reply: object, expected: object) -> None:
        """The reply is that of the model, and so is all that is in Redis."""
        self.is_sound = False
        assert reply == expected, f"answered {reply}, should be {expected}"
        self.check()

    def check(self) -> None:
        """Nothing differs, and the invariants hold (I1, I4, I9, I11, I13)."""
        self.is_sound = False
        actual = read_keyspace(self.redis)
        self._check_turns(actual)
        self._check_times()
        self._stop_clocks(actual)
        listed = {name for name, model in self.models.items() if model.is_listed}
        expected: dict[str, object] = {"rtq:queues": listed} if listed else {}
        for name, model in self.models.items():
            expected |= {f"{{rtq:{name}}}:{key}": value for key, value in model.keyspace().items()}
            wrong = problems(actual, f"{{rtq:{name}}}:")
            assert not wrong, f"{name}: {wrong}"
            if f"{{rtq:{name}}}:work_signal" in actual:
                self.woken.discard(name)
            elif name not in self.woken:
                assert not (lanes := startable(actual, f"{{rtq:{name}}}:")), f"{name}: nobody is woken for {lanes}"
        actual = {name: value for name, value in actual.items() if not name.endswith(":runners")}  # see problems()
        assert actual == expected, differences(actual, expected)
        for details in self.readers.queues.details(QUEUES):
            assert overview_of(self.models[details.name]) == {
                field: getattr(details, field) for field in overview_of(self.models[details.name])
            }
        self.is_sound = True

    def _check_turns(self, actual: dict[str, Any]) -> None:
        """No turn number is given out twice. Which ones are is the scripts' own business."""
        for name in QUEUES:
            turn = int(actual.pop(f"{{rtq:{name}}}:turn", 0))
            assert turn >= self._turns.get(name, 0)
            self._turns[name] = turn

    def _check_times(self) -> None:
        """Rings are compared by their order. Turns by virtual time are known."""
        for name, model in self.models.items():
            for band, ring in model.rings.items() if model.order.are_virtual else ():
                key = self.broker.keys.of(name).ring + str(band).encode()
                turns: dict[bytes, Any] = dict(self.redis.zrange(key, 0, -1, withscores=True))
                for client in ring:
                    turn = model.turns.get((band, client))
                    told = turn is None or f"{turns.get(client.encode(), 0):.6g}" == f"{turn:.6g}"
                    assert told, f"the turn of {client} is {turns.get(client.encode())}, and should be {turn}"

    def _stop_clocks(self, actual: dict[str, Any]) -> None:
        """A script that says that somebody lives notes what the server's clock shows, and that time goes on from there:
        until its clock has made up for being ten times as far behind. Here time stands still."""
        for name in QUEUES:
            sweep, key = actual.get(f"{{rtq:{name}}}:clock", {}), self.broker.keys.of(name).clock
            if "anchor" in sweep:
                tenths, clock = map(int, sweep.pop("anchor").split())
                assert (tenths, int(sweep["high"])) == (10 * self.clock.now, tenths - 9 * clock)
                sweep["high"] = str(self.clock.now)
                self.redis.hset(key, "high", self.clock.now)
                self.redis.hdel(key, "anchor")

    def _script(self, queue: str, name: str, *arguments: int | str, worker: str = "") -> Any:
        return self.broker.redis.execute_one(SCRIPTS[name].call(self.broker.keys.of(queue), arguments, worker=worker))
