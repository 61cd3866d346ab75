"""Tasks of the workflows in tests."""

from django_rtq import Bury, constant, task
from tests.app import journal
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


@task(backoff=AT_ONCE, takes_context=True)
def grow(context, name, depth):
    """Adds two jobs, one of which adds more, and one that waits for them."""
    flow = context.workflow
    with told(f"grow {name}"):
        if depth:
            more = [flow.add(grow, f"{name}{letter}", depth - 1) for letter in "ab"]
            flow.after(*more).add(report, f"after {name}")


@task(backoff=AT_ONCE, takes_context=True)
def double_more(context, numbers):
    """Adds jobs, and one that takes their results."""
    with told("double_more"):
        flow = context.workflow
        flow.add(report, "sum", flow.add(add_up, flow.map(double, numbers).results).result)


@task(backoff=AT_ONCE, takes_context=True, max_crashes=1000)
def survive(context, name):
    """Tells its id. What is to die does so once."""
    with told(f"{name} {context.job_id}"):
        mark = journal.folder() / f"died-{name}"
        if "dies" in name and not mark.exists():
            mark.touch()
            raise Bury(f"{name} dies")
        return name


@task(backoff=AT_ONCE, takes_context=True, max_crashes=1000)
def fan_out(context, name):
    """Tells its id, and adds a fan-out with an end of its own."""
    with told(f"{name} {context.job_id}"):
        flow = context.workflow
        members = flow.map(survive.using(queue_name="low"), [f"{name}/{number}" for number in range(3)])
        flow.after(members).add(survive, f"{name}/end")


@task(backoff=AT_ONCE, takes_context=True, max_crashes=1000)
def gather(context, name, results):
    """Tells its id, and how many results it got."""
    with told(f"{name} {context.job_id}"):
        return len(list(results))
