"""What happens to the keys of a queue by accident: lost signals, and what a torn append-only file leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django_rtq.core.jobs.outcome import CANCELLED_UNRUN
from tests.protocol.model.state import RESULT_MS

if TYPE_CHECKING:
    from tests.protocol.model.parallel_run import ParallelRun


class Accidents:
    """They happen in Redis and in the model. Afterwards all keys are compared, mostly by way of another verb."""

    def __init__(self, parallel: ParallelRun) -> None:
        self.parallel = parallel

    def take_token(self, queue: str, token: str) -> None:
        """Somebody was woken."""
        self.parallel.redis.zpopmin(getattr(self.parallel.broker.keys.of(queue), token))
        setattr(self.parallel.models[queue], token, False)
        if token == "work_signal":
            self.parallel.woken.add(queue)
        self.parallel.check()

    def let_limit_pass(self, queue: str, digest: str) -> None:
        """A digest was held for as long as it may be."""
        self.parallel.redis.delete(self.parallel.broker.keys.of(queue).unique + digest.encode())
        self.parallel.models[queue].unique.pop(digest, None)
        self.parallel.check()

    def lose_turn(self, queue: str, lane: tuple[int, str]) -> None:
        """A torn log lost that a client has work; the audit finds it."""
        keys, model = self.parallel.broker.keys.of(queue), self.parallel.models[queue]
        self.parallel.redis.zrem(keys.ring + str(lane[0]).encode(), lane[1])
        model.blocked_in[lane[0]].discard(lane[1])
        model.rings[lane[0]] = [client for client in model.rings[lane[0]] if client != lane[1]]
        self.parallel.audit(queue)

    def lose_band(self, queue: str, band: int) -> None:
        """A torn log lost that a band has work; the audit finds it."""
        self.parallel.redis.zrem(self.parallel.broker.keys.of(queue).bands, band)
        self.parallel.models[queue].bands.discard(band)
        self.parallel.audit(queue)

    def bend_index(self, queue: str, client: str) -> None:
        """A torn log kept in the index what waits for its time no more; promote comes by."""
        self.parallel.promote(queue)
        keys, now = self.parallel.broker.keys.of(queue), self.parallel.clock.now
        self.parallel.redis.zadd(keys.scheduled_by_client + f":{client}".encode(), {"torn": now})
        self.parallel.redis.zadd(keys.scheduled_by_client, {client: now}, lt=True)
        model = self.parallel.models[queue]
        model.scheduled_by_client[client] = min(now, model.scheduled_by_client.get(client, now))
        self.parallel.promote(queue)

    def bend_counts(self, queue: str, client: str) -> None:
        """A torn log lost that a job ended, or started; the audit counts again."""
        for number in (0, 7):
            self.parallel.redis.hset(self.parallel.broker.keys.of(queue).running_counts, f"client:{client}", number)
            self.parallel.audit(queue)

    def lose_block(self, queue: str, client: str) -> None:
        """A torn log lost in which bands a client waits, and in another way that it does not have to wait any more."""
        keys, model = self.parallel.broker.keys.of(queue), self.parallel.models[queue]
        self.parallel.redis.hdel(keys.blocked, client)
        self.parallel.audit(queue)
        self.parallel.redis.hset(keys.limits, f"client:{client}", "max_running=9")
        self.parallel.redis.hset(keys.limit_sources, f"run:client:{client}", "max_running=9")
        model.set_limits[f"client:{client}"] = model.limit_sources[f"run:client:{client}"] = "max_running=9"
        self.parallel.audit(queue)

    def lose_next_start(self, queue: str, client: str) -> None:
        """A torn log lost when a client may start a job; the audit finds it."""
        self.parallel.redis.zrem(self.parallel.broker.keys.of(queue).next_starts, f"client:{client}")
        self.parallel.models[queue].next_starts.pop(f"client:{client}", None)
        self.parallel.audit(queue)

    def lose_worker(self, queue: str, worker: str) -> None:
        """A torn log kept what a worker holds, and not that it is there; the audit finds it."""
        self.parallel.redis.zrem(self.parallel.broker.keys.of(queue).workers, worker)
        self.parallel.models[queue].workers.pop(worker, None)
        self.parallel.audit(queue)
        self.parallel.advance(0)

    def claim_half(self, queue: str, worker: str, job_id: str, guilty: Sequence[str]) -> None:
        """A torn log kept that a worker holds a job, and not that it left its lane. Then the worker dies."""
        held = f"1 {self.parallel.clock.now}"
        self.parallel.redis.hset(self.parallel.broker.keys.of(queue).running(worker), job_id, held)
        self.parallel.models[queue].running[worker][job_id] = held
        self.parallel.reclaim_child(queue, worker, guilty)

    def stop_half(self, queue: str, worker: str, job_id: str) -> None:
        """A torn log kept that a job which was to stop is over, and not that no worker has it. Then that one dies."""
        keys, model = self.parallel.broker.keys.of(queue), self.parallel.models[queue]
        wish, held = f"ask {RESULT_MS} 4 {CANCELLED_UNRUN}", f"1 {self.parallel.clock.now}"
        self.parallel.redis.hset(keys.cancel_requests, job_id, wish)
        self.parallel.redis.hset(keys.running(worker), job_id, held)
        model.cancel_requests[job_id], model.running[worker][job_id] = wish, held
        self.parallel.reclaim_child(queue, worker, [job_id])
