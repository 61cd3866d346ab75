"""repid: python -m benchmarks.rivals.repid LIMIT runs a worker with so many coroutines."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable

from repid import RedisServer, Repid, Router

from benchmarks.rivals import bodies

app = Repid()
app.servers.register_server("default", RedisServer(bodies.URL, batch_size=100, claim_interval=10.0), is_default=True)
router = Router()


@router.actor
async def noop(number: int) -> None:
    """A coroutine."""
    bodies.noop(number)


@router.actor
async def nap(number: int) -> None:
    """Wait 6 ms."""
    await bodies.nap_async(number)


@router.actor(on_error="reject")
async def fail_once(number: int) -> None:
    """Fail in the first run: it goes to the end of the stream."""
    bodies.fail_once(number)


@router.actor
async def record_start(slot: int) -> None:
    """Record when it started."""
    bodies.record_start(slot)


app.include_router(router)
loop = asyncio.new_event_loop()


def send(task: str, numbers: Iterable[int]) -> None:
    """send_message_json() for each, awaited."""
    loop.run_until_complete(_send(task, numbers))


async def _send(task: str, numbers: Iterable[int]) -> None:
    server = app.servers.default
    if not server.is_connected:
        await server.connect()
    for number in numbers:
        payload = json.dumps({"number" if task != "record_start" else "slot": number}).encode()
        await app.send_message(
            channel="default", payload=payload, headers={"topic": task}, content_type="application/json"
        )


async def _work(limit: int) -> None:
    async with app.servers.default.connection():
        await app.run_worker(tasks_limit=limit)


if __name__ == "__main__":
    asyncio.run(_work(int(sys.argv[1])))
