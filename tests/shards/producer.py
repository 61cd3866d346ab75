"""A program, run by `manage.py shell`, that enqueues jobs until it is ended, and writes down which were accepted."""

import itertools
import os
import threading
from contextlib import suppress
from pathlib import Path

from django_rtq import BrokerUnavailable
from tests.app import tasks

ACCEPTED = "RTQ_TEST_ACCEPTED"  # the file with the names
PAUSE_SECONDS = 0.01
CLIENTS = 40


def produce(kind):
    """Jobs of all clients, and some without one."""
    pause = threading.Event()
    with Path(os.environ[ACCEPTED]).open("a", buffering=1) as accepted:
        for number in itertools.count():
            client = f"shop-{number % CLIENTS}" if number % 5 else ""
            with suppress(BrokerUnavailable):  # it may be stored
                tasks.work.using(client=client).delay(name := f"{kind}-{number}")
                accepted.write(f"{name}\n")
            pause.wait(PAUSE_SECONDS)
