"""What happens to the keys of a queue by accident: lost signals, and what a torn append-only file leaves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.jobs.outcome import CANCELLED_UNRUN
from tests.broker.model.queue import Queue
from tests.broker.model.state import RESULT_MS, Clock


class Accidents:
    """They happen in Redis and in the model. Afterwards all keys are compared, mostly by way of another verb."""

    redis: Any
    broker: Broker
    clock: Clock
    models: Mapping[str, Queue]
    woken: set[str]

    @abstractmethod
    def check(self) -> None: ...

    @abstractmethod
    def advance(self, ms: int) -> None: ...

    @abstractmethod
    def audit(self, queue: str, start: int = 0, limit: int = 100) -> None: ...

    @abstractmethod
    def promote(self, queue: str, limit: int = 100) -> None: ...

    @abstractmethod
    def reclaim_child(self, queue: str, worker: str, guilty: Sequence[str]) -> None: ...

    def take_token(self, queue: str, token: str) -> None:
        """Somebody was woken."""
        self.redis.zpopmin(getattr(self.broker.keys.of(queue), token))
        setattr(self.models[queue], token, False)
        if token == "work_signal":
            self.woken.add(queue)
        self.check()

    def let_limit_pass(self, queue: str, digest: str) -> None:
        """A digest was held for as long as it may be."""
        self.redis.delete(self.broker.keys.of(queue).unique + digest.encode())
        self.models[queue].unique.pop(digest, None)
        self.check()

    def lose_turn(self, queue: str, lane: tuple[int, str]) -> None:
        """A torn log lost that a client has work; the audit finds it."""
        keys, model = self.broker.keys.of(queue), self.models[queue]
        self.redis.zrem(keys.ring + str(lane[0]).encode(), lane[1])
        model.blocked_in[lane[0]].discard(lane[1])
        model.rings[lane[0]] = [client for client in model.rings[lane[0]] if client != lane[1]]
        self.audit(queue)

    def lose_band(self, queue: str, band: int) -> None:
        """A torn log lost that a band has work; the audit finds it."""
        self.redis.zrem(self.broker.keys.of(queue).bands, band)
        self.models[queue].bands.discard(band)
        self.audit(queue)

    def bend_index(self, queue: str, client: str) -> None:
        """A torn log kept in the index what waits for its time no more; promote comes by."""
        self.promote(queue)
        keys, now = self.broker.keys.of(queue), self.clock.now
        self.redis.zadd(keys.scheduled_by_client + f":{client}".encode(), {"torn": now})
        self.redis.zadd(keys.scheduled_by_client, {client: now}, lt=True)
        model = self.models[queue]
        model.scheduled_by_client[client] = min(now, model.scheduled_by_client.get(client, now))
        self.promote(queue)

    def bend_counts(self, queue: str, client: str) -> None:
        """A torn log lost that a job ended, or started; the audit counts again."""
        for number in (0, 7):
            self.redis.hset(self.broker.keys.of(queue).running_counts, f"client:{client}", number)
            self.audit(queue)

    def lose_block(self, queue: str, client: str) -> None:
        """A torn log lost in which bands a client waits, and in another way that it does not have to wait any more."""
        keys, model = self.broker.keys.of(queue), self.models[queue]
        self.redis.hdel(keys.blocked, client)
        self.audit(queue)
        self.redis.hset(keys.limits, f"client:{client}", "max_running=9")
        self.redis.hset(keys.limit_sources, f"run:client:{client}", "max_running=9")
        model.set_limits[f"client:{client}"] = model.limit_sources[f"run:client:{client}"] = "max_running=9"
        self.audit(queue)

    def lose_next_start(self, queue: str, client: str) -> None:
        """A torn log lost when a client may start a job; the audit finds it."""
        self.redis.zrem(self.broker.keys.of(queue).next_starts, f"client:{client}")
        self.models[queue].next_starts.pop(f"client:{client}", None)
        self.audit(queue)

    def lose_worker(self, queue: str, worker: str) -> None:
        """A torn log kept what a worker holds, and not that it is there; the audit finds it."""
        self.redis.zrem(self.broker.keys.of(queue).workers, worker)
        self.models[queue].workers.pop(worker, None)
        self.audit(queue)
        self.advance(0)

    def claim_half(self, queue: str, worker: str, job_id: str, guilty: Sequence[str]) -> None:
        """A torn log kept that a worker holds a job, and not that it left its lane. Then the worker dies."""
        held = f"1 {self.clock.now}"
        self.redis.hset(self.broker.keys.of(queue).running(worker), job_id, held)
        self.models[queue].running[worker][job_id] = held
        self.reclaim_child(queue, worker, guilty)

    def stop_half(self, queue: str, worker: str, job_id: str) -> None:
        """A torn log kept that a job which was to stop is over, and not that no worker has it. Then that one dies."""
        keys, wish, held = self.broker.keys.of(queue), f"ask {RESULT_MS} 4 {CANCELLED_UNRUN}", f"1 {self.clock.now}"
        self.redis.hset(keys.cancel_requests, job_id, wish)
        self.redis.hset(keys.running(worker), job_id, held)
        self.models[queue].cancel_requests[job_id], self.models[queue].running[worker][job_id] = wish, held
        self.reclaim_child(queue, worker, [job_id])
