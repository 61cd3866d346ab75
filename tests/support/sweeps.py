"""Actions on many jobs, as tests call them."""

from django_rtq.console.reading.actions import LATEST
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.sweep import STEP, Sweep, run_steps
from tests.support.jobs import QUEUE


def sweep(verb, *, queues=(QUEUE,), states=(), until_ms=LATEST, target="", **wanted):
    """An action on all jobs of these queues that match a filter."""
    selection = Selection(queues=queues, states=states, until_ms=until_ms, **wanted)
    return Sweep(verb=verb, selection=selection, target=target)


def steps(readers, verb, *, limit=STEP, **named):
    return readers.sweeps.steps(sweep(verb, **named), limit=limit)


def run(readers, verb, **named):
    """All of its steps, added up."""
    return run_steps(readers.sweeps.steps(sweep(verb, **named)))


def count(readers, verb, *, until_ms=None, **named):
    """How many jobs it is about."""
    return readers.sweeps.count(sweep(verb, until_ms=until_ms, **named))
