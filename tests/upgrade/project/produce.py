"""Enqueues jobs of every kind, for as long as the first argument says in seconds, and cancels some of them.

Waits while too many are waiting. Prints nothing; notes the id of each job in `enqueued`, of each that was cancelled
before it ran in `cancelled`, and of each that was asked to stop while it ran in `asked`, in the folder of the test.
"""

import random
import sys
import time
from contextlib import suppress

import django

django.setup()

from django.conf import settings  # noqa: E402
from shop import tasks  # noqa: E402

from django_rtq import WrongState  # noqa: E402

CLIENTS = ["north", "south", "east", "west"]
MOST_WAITING = 1000


def note(file, handles):
    with (settings.FOLDER / file).open("a") as lines:
        lines.write("".join(f"{handle.id}\n" for handle in handles))


def one_round(dice, number):
    client = dice.choice(CLIENTS)
    handles = tasks.count.delay_many([((n, client), {}) for n in range(60)])
    for queue in ("limited", "rated", "weighted", "seconds"):
        to_queue = tasks.work.using(queue_name=queue)
        handles += [to_queue.delay(name, 0.002) for name in CLIENTS for _ in range(2)]
    handles += tasks.awork.delay_many([((n,), {}) for n in range(10)])
    handles += tasks.second_time.delay_many([((n,), {}) for n in range(5)])
    handles += tasks.count.using(run_after=dice.random()).delay_many([((n, client), {}) for n in range(10)])
    handles += [tasks.count.using(priority=dice.randrange(3)).delay(number, client) for _ in range(5)]
    handles.append(tasks.once.using(unique_seconds=1).delay(number % 7))
    note("enqueued", [handle for handle in handles if not handle.duplicate])
    for handle in dice.sample(handles[:60], 5):
        with suppress(WrongState):  # it is over
            note(handle.cancel(), [handle])


def waiting():
    try:
        from django_rtq import rtq
    except ImportError:  # the version before has none
        from django_rtq.console.inspector.inspector import get_inspector

        return sum(queue.queued for queue in get_inspector().queues.details())
    return sum(queue.details().queued for queue in rtq.queues)


def main():
    dice = random.Random(sys.argv[2])
    until = time.monotonic() + float(sys.argv[1])
    number = 0
    while time.monotonic() < until:
        if waiting() > MOST_WAITING:
            time.sleep(0.05)
            continue
        one_round(dice, number)
        number += 1


if __name__ == "__main__":
    main()
