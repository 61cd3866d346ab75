"""Jobs that take long: they are stopped, or tell how far they are."""

import time

from django_rtq import constant, task
from tests.app import diary

AT_ONCE = constant(0)


@task(backoff=AT_ONCE)
def deaf(name, gate=None):
    """Does not stop when it is asked to."""
    diary.write("start", name)
    while not gate or not (diary.folder() / gate).exists():
        try:
            time.sleep(0.01)
        except BaseException:  # noqa: BLE001
            diary.write("ignored", name)
    return "done"


@task(backoff=AT_ONCE)
def careful(name):
    """Goes on after errors, but tidies up when it is asked to stop."""
    diary.write("start", name)
    try:
        while True:
            try:
                time.sleep(0.01)
            except Exception:  # noqa: BLE001
                diary.write("ignored", name)
    finally:
        time.sleep(0.6)
        diary.write("tidied", name)
