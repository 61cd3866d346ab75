"""A program of processes that enqueue jobs through the outbox, and kill themselves at the worst moments.

Each process commits an order and its job, or is killed before. Its number says where it is killed.
"""

import os
import signal
import sys

import django

MOMENTS = ("never", "before the commit", "before it is sent", "before the rows are deleted", "Redis is away")


def moment_of(number):
    """Where the process of this number is killed."""
    return MOMENTS[number % len(MOMENTS)]


def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def produce(number):
    """Commit an order with its job."""
    from django.db import connection, transaction
    from django.test import override_settings

    from django_rtq.core import transactions
    from django_rtq.databases import outbox
    from tests.app.tasks import note

    moment = moment_of(number)
    if moment == "before it is sent":
        transactions._answers = kill
    if moment == "before the rows are deleted":
        outbox.delete_or_log = kill
    redis = "redis://127.0.0.1:1/0" if moment == "Redis is away" else os.environ["RTQ_REDIS_URL"]
    with override_settings(RTQ={"REDIS": redis, "OUTBOX": True}), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders (name) VALUES (%s)", [f"order-{number}"])
        note.delay(f"order-{number}")
        if moment == "before the commit":
            kill()


if __name__ == "__main__":
    django.setup()
    for number in range(int(sys.argv[1])):
        child = os.fork()
        if not child:
            produce(number)
            os._exit(0)
        os.waitpid(child, 0)
