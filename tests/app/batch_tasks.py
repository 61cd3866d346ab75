"""Functions that get many jobs at once."""

import os
import time
from dataclasses import asdict

from django_rtq import BatchFailed, Bury, Retry, TimeLimitExceeded, constant, current_job, report_progress, task
from tests.app import journal
from tests.app.tasks import wait_for


def _tell(calls):
    """One line of the journal for each call of a function."""
    journal.write("batch", " ".join(str(call.args[0]) for call in calls))


@task(batch=10)
def index(calls):
    _tell(calls)


@task(batch=10)
def double(calls):
    return [2 * call.args[0] for call in calls]


@task(batch=10, backoff=constant(0), max_attempts=3)
def pick(calls):
    """Does what the second argument of each call says."""
    _tell(calls)
    kinds = {"fail": ValueError("no"), "later": Retry(after=60), "bury": Bury("never"), "memory": MemoryError()}
    raise BatchFailed({n: kinds[call.args[1]] for n, call in enumerate(calls) if call.args[1] in kinds})


@task(batch=8, backoff=constant(0), max_attempts=6)
def all_or_none(calls):
    """Fails for all if one is "bad"."""
    _tell(calls)
    if any(call.args[0] == "bad" for call in calls):
        raise ValueError("one is bad")


@task(batch=10)
def returns(calls):
    """Returns what the first call says."""
    return calls[0].kwargs["value"]


@task(batch=10)
def unstorable(calls):
    """A result that cannot be stored for each "bad"."""
    return [object() if call.args[0] == "bad" else None for call in calls]


@task(batch=10)
def echo(calls):
    return [asdict(call) for call in calls]


@task(batch=10)
def names_call(calls):
    raise BatchFailed({calls[0].args[0]: ValueError("no")})


@task(batch=8, max_attempts=3)
def random_backoff(calls):
    _tell(calls)
    if any(call.args[0] == "bad" for call in calls):
        raise ValueError("one is bad")


@task(batch=10)
def does(calls):
    """What a function can do with the job that it is."""
    context, what = current_job(), calls[0].args[0]
    if what == "step":
        context.step("one", str)
    elif what == "sleep":
        context.sleep(5)
    elif what == "wait":
        context.wait("event")
    elif what == "workflow":
        context.workflow.add(index, 1)
    report_progress(1, len(calls))
    return [context.job_id for _ in calls]


@task(batch=10, max_crashes=3)
def crash(calls):
    _tell(calls)
    if any(call.args[0] == "bad" for call in calls):
        os._exit(9)


@task(batch=10)
def gate(calls):
    _tell(calls)
    wait_for(calls[0].args[1])


@task(batch=10, backoff=constant(60))
def gate_and_fail(calls):
    gate.func(calls)
    raise ValueError("no")


@task(batch=10)
def sleep(calls):
    time.sleep(0.02)


@task(batch=10, time_limit=0.05, max_attempts=1)
def slow(calls):
    time.sleep(60)


@task(batch=10, time_limit=0.05, max_attempts=1)
def stubborn(calls):
    """Goes on after its time limit."""
    _tell(calls)
    while True:
        try:
            time.sleep(60)
        except TimeLimitExceeded:
            continue


@task(batch=10)
def add_up(calls):
    """Gets the results of other jobs."""
    for call in calls:
        journal.write("added", sum(call.args[0]))
    return [sum(call.args[0]) for call in calls]
