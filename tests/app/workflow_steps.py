"""Tasks of the workflows in tests."""

from django_rtq import Bury, constant, task
from tests.app.tasks import told

AT_ONCE = constant(0)


@task(backoff=AT_ONCE)
def double(number):
    with told(f"double {number}"):
        return 2 * number


@task(backoff=AT_ONCE)
def add_up(numbers):
    with told("add_up"):
        return sum(numbers)


@task(backoff=AT_ONCE)
def report(text, total=None):
    with told(f"report {text}"):
        return f"{text}: {total}"


@task(backoff=AT_ONCE, max_attempts=1)
def refuse(name):
    with told(f"refuse {name}"):
        raise Bury(f"{name} is refused")
