"""Each verb that a worker tells Redis is in each place that has to know it."""

from dataclasses import fields
from typing import get_args

import pytest

from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.settlement import VERBS, Settlement
from django_rtq.core.jobs.record import write_record
from django_rtq.core.worker.outcome import (
    Buried,
    Cancelled,
    Expired,
    Outcome,
    Retried,
    Suspended,
    UnknownTask,
)
from django_rtq.core.worker.process.metrics import RunMetrics
from django_rtq.core.worker.process.outcome_recorder import OutcomeRecorder
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.run_counts import COUNTED_AS
from django_rtq.core.worker.shared_entries import _STATUS_OF
from tests.core.worker.claimed_runs import BODY, DONE
from tests.core.worker.shared_states import ID, running
from tests.support.jobs import QUEUE, WORKER

OUTCOMES = [DONE, Retried(ValueError("x"), 60), Buried(ValueError("x")), Expired(), Cancelled(), Suspended(60, "bell")]
VERB_OF = dict(zip(map(type, OUTCOMES), ["ack", "retry", "bury", "expire", "finish_cancel", "suspend"], strict=True))
NO_OUTCOMES = {"note_times", "release"}


def with_entry(verb, word):
    settlement = Settlement()
    getattr(settlement, verb).extend([word] * VERBS[verb].width)
    return settlement


def test_no_verb_is_missing():
    assert {field.name for field in fields(Settlement)} - {"logs", "metrics"} == VERBS.keys()
    assert {verb for verb, how in VERBS.items() if not how.is_outcome} == NO_OUTCOMES
    assert set(VERB_OF.values()) == _STATUS_OF.keys() == VERBS.keys() - NO_OUTCOMES - {"ack_members"}
    assert {*VERB_OF, UnknownTask} == set(get_args(Outcome))
    assert COUNTED_AS.keys() == set(VERB_OF.values()) - {"finish_cancel", "suspend"}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_kept_sent_and_removed(broker, verb):
    first, later, keys = with_entry(verb, "first"), with_entry(verb, "later"), Keys("").of(QUEUE)
    joined = first.joined(later)

    assert getattr(joined, verb) == [*getattr(first, verb), *getattr(later, verb)]
    assert joined.job_ids() == {b"first", b"later"}
    assert joined.has_outcomes is (verb not in NO_OUTCOMES)
    assert joined.any_outcome_id() == (b"" if verb in NO_OUTCOMES else b"first")
    assert [sent for sent, _ in joined.commands(keys, keys, WORKER, max_results=1, logs_ms=1)] == [verb]
    joined.clear(verb)
    assert not joined.job_ids()


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_each_outcome_is_told_redis_and_the_supervisor(broker, outcome):
    shared, entry = running()
    run = Run(QUEUE, ID, write_record(0, 1, 0, "", BODY).encode(), worker=WORKER, now_ms=0)
    run.open()
    run.entry, settlement, verb = entry, Settlement(), VERB_OF[type(outcome)]

    OutcomeRecorder(broker.config, shared, RunMetrics()).record(settlement, run, outcome)

    assert [verb for verb in VERBS if getattr(settlement, verb)] == [verb]
    assert [finished.verb for finished in shared.finished()] == [verb]
