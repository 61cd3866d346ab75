"""Each outcome of a run has a verb, which is in each place that has to know it."""

import json
import re

import pytest

from django_rtq.core import signals
from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.redis.commands import script_of
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import ACK_MEMBER, NOTE_TIME, Report, Settlement
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.job import write_record
from django_rtq.core.worker.outcome import (
    BURIED,
    CANCELLED,
    COUNTED_AS,
    EXPIRED,
    RETRIED,
    SUSPENDED,
    VERBS,
    Outcome,
)
from django_rtq.core.worker.process.session import WorkerSession, send_outcome
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.supervisor.crash_recovery import with_text
from tests.core.worker.claimed_runs import BODY, DONE
from tests.core.worker.shared_states import ID, running
from tests.support.jobs import QUEUE, WORKER, receiving
from tests.support.mutant import FILES

OUTCOMES = [
    DONE,
    Outcome(RETRIED, ValueError("x"), 60),
    Outcome(BURIED, ValueError("x")),
    Outcome(EXPIRED),
    Outcome(CANCELLED),
    Outcome(SUSPENDED, seconds=60, text="bell"),
]
SIGNALS = [getattr(signals, f"job_{past}") for past in "succeeded retried buried expired cancelled suspended".split()]
ALL = {**dict.fromkeys(VERBS, "settle"), "release": "settle", NOTE_TIME: "note_times", ACK_MEMBER: "finish_members"}


def test_no_verb_is_missing():
    script = FILES["settle"]
    header, code = script.split("\n\n", 1)

    assert set(re.findall(r"^-- {21}(\w+) {2,}", header, re.MULTILINE)) == {*VERBS, "release"}
    assert {*re.findall(r'what == "(\w+)"', code), *re.findall(r'(\w+) = "\w+"', code)} == {*VERBS, "release"}
    assert [outcome.verb for outcome in OUTCOMES] == VERBS
    assert COUNTED_AS.keys() == set(VERBS) - {"finish_cancel", "suspend"}


@pytest.mark.parametrize("verb", [verb for verb in ALL if ALL[verb] in SCRIPTS])
def test_each_verb_is_kept_sent_and_removed(broker, verb):
    first, later = (Settlement(reports=[Report(verb, word)]) for word in ("first", "later"))
    joined, is_outcome = first.joined(later), verb not in ("release", NOTE_TIME)

    assert joined.job_ids() == {b"first", b"later"}
    assert joined.any_outcome_id() == (b"first" if is_outcome else b"")
    ((sent, command),) = joined.commands(*[Keys("").of(QUEUE)] * 2, WORKER, get_config())
    assert script_of(command).name == ALL[verb]
    joined.remove(sent)
    assert not joined


def recorded(broker, outcome, room=None):
    """A run that ended so, with its report to Redis, and what the supervisor knows of it."""
    shared, entry = running()
    shared._full_at = shared._full_at if room is None else shared._text_at + room
    run = Run(QUEUE, ID, write_record(0, 1, 0, "", BODY).encode(), worker=WORKER, now_ms=0)
    run.open()
    run.entry, settlement = entry, Settlement()
    WorkerSession(broker, shared, [QUEUE], base_name=WORKER)._record(settlement, run, outcome)
    (finished,) = shared.finished()
    return run, settlement, finished


@pytest.mark.parametrize(("verb", "outcome", "signal"), [*zip(VERBS, OUTCOMES, SIGNALS, strict=True)])
def test_each_outcome_is_told_redis_the_supervisor_and_receivers(broker, verb, outcome, signal):
    run, settlement, finished = recorded(broker, outcome)
    sent = []
    with receiving(lambda signal, **_: sent.append(signal), *SIGNALS):
        send_outcome(Run, run, outcome)
    of_lost_text = with_text(finished._replace(text=b""), WORKER)

    assert (len(settlement.ack), settlement.job_ids()) == (3 if verb == "ack" else 0, {ID})
    assert [report.verb for report in settlement.reports] == ([] if verb == "ack" else [verb])
    assert (finished.verb, of_lost_text.verb, sent) == (verb, verb, [signal])
    assert (b"The error is lost" in of_lost_text.text) == (verb in ("retry", "bury"))


@pytest.mark.parametrize("verb", [BURIED, RETRIED])
def test_of_a_long_error_the_supervisor_knows_the_beginning(broker, verb):
    _, _, finished = recorded(broker, Outcome(verb, ValueError("x" * 1000)), room=600)

    assert len(json.loads(finished.text)["error"]) == 100
