"""Enqueues jobs, and prints their ids as JSON: {what they are for: [id, …]}. The argument says which."""

import json
import sys
import uuid
from datetime import datetime, timezone
from decimal import Decimal

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from shop import tasks  # noqa: E402

from django_rtq.models import Schedule  # noqa: E402

VALUES = {
    "at": datetime(2026, 11, 25, 12, tzinfo=timezone.utc),
    "price": Decimal("9.90"),
    "id": uuid.UUID(int=7),
    "text": "für\n€",
    "list": [1, None, {"a": 2.5}],
}


def write_to_be_run():
    """For a worker of this version."""
    return {
        "succeeded": [tasks.count.delay(number, "north").id for number in range(3)] + [tasks.echo.delay(**VALUES).id],
        "retrying": [tasks.mended_later.delay("later").id],
        "dead": [tasks.mended_by_hand.delay(number).id for number in range(3)],
        "expired": [tasks.count.using(expires=0.001).delay("late").id],
        "django": [tasks.receipt.enqueue(1).id] if hasattr(tasks, "receipt") else [],
    }


def write_to_be_killed():
    """For a worker of this version that is killed: it runs the first, and has just committed the other."""
    return {"crashed": [tasks.hang.delay("hangs").id], "committed": [tasks.pay.delay("paid").id]}


def write_to_be_left():
    """For a worker of another version."""
    cancelled = tasks.count.delay("never")
    cancelled.cancel()
    ids = {
        "queued": [tasks.count.delay(number, client).id for number in range(3) for client in ("north", "south")]
        + [tasks.count.using(priority=5).delay("first").id, tasks.count.using(at_front=True).delay("front").id]
        + [tasks.echo.using(headers={"request": "r1"}).delay(**VALUES).id, tasks.awork.delay("coroutine").id]
        + [handle.id for handle in tasks.count.delay_many([((number,), {}) for number in range(50)])]
        + [
            tasks.count.using(queue_name=queue).delay(number, client).id
            for queue in ("limited", "rated", "weighted", "seconds")
            for client in ("north", "south")
            for number in range(3)
        ],
        "due": [tasks.count.using(run_after=0.2).delay("soon").id],
        "scheduled": [tasks.count.using(run_after=3600).delay("tomorrow", "north").id],
        "unique": [tasks.once.using(run_after=3600).delay("one").id],
        "cancelled": [cancelled.id],
        "in_paused_queue": [tasks.count.using(queue_name="paused").delay("paused").id],
        "of_paused_client": [tasks.count.delay("paused", "east").id],
        "of_paused_task": [tasks.second_time.delay("paused").id],
        "django_left": [tasks.receipt.enqueue(2).id] if hasattr(tasks, "receipt") else [],
    }
    call_command("rtq_queues", "pause", "paused", verbosity=0)
    call_command("rtq_clients", "pause", "default", "east", verbosity=0)
    call_command("rtq_tasks", "pause", "default", "shop.tasks.second_time", verbosity=0)
    call_command("rtq_clients", "limit", "default", "--client", "south", "--max-running", "1", verbosity=0)
    call_command("rtq_schedule", "disable", "nightly", verbosity=0)
    Schedule.objects.create(name="weekly", task="shop.tasks.count", cron="0 4 * * 1", args=["weekly"])
    return ids


def write_outbox():
    """Without Redis: rows of the outbox stay."""
    with transaction.atomic():
        return {"outbox": [tasks.count.delay(number, "north").id for number in range(3)]}


if __name__ == "__main__":
    print_to = sys.stdout
    sys.stdout = sys.stderr  # what the commands say
    ids = globals()[f"write_{sys.argv[1]}"]()
    json.dump(ids, print_to)
