"""All incidents together, and those of the server and the outbox."""

import re
from datetime import datetime, timezone

import pytest
from django.test import override_settings
from django.utils import translation
from django.utils.translation import ngettext_lazy

from django_rtq.console.incident_options import KINDS
from django_rtq.console.incidents import Action, Severity
from django_rtq.console.incidents.incident import DETECTORS, QUEUE
from django_rtq.console.incidents.workers import workers_quiet
from django_rtq.databases.outbox import OutboxLag
from tests.console.incidents.overviews import ago, incidents, kinds, minutes, of_shards, row
from tests.markdown import read, rows, section


def test_the_list_of_kinds_and_the_page_are_those_of_the_detectors():
    named = {}
    for names, severities, _ in rows(section(read("docs/incidents.md"), "## Kinds")):
        named |= dict.fromkeys(re.findall(r"`(\w+)`", names), tuple(severities.split(", ")))
    assert sorted(KINDS) == sorted(DETECTORS)
    assert named == {kind: tuple(map(str, detector.severities)) for kind, detector in DETECTORS.items()}


def test_of_one_kind_and_subject_they_are_one_however_many_shards():
    late = {"contact_seconds": 900.0, "oldest_seconds": 50.0}
    found = {
        0: incidents(row("calls", queued=2, **late)),
        2: incidents(row("calls", queued=3, **late), row(paused=True)),
    }

    unserved, paused = of_shards(found)

    assert (unserved.kind, unserved.shards, unserved.values["count"]) == ("queue_unserved", (0, 2), 5)
    assert unserved.text == "Shards 0, 2: Queue calls: 5 jobs wait, and no worker serves the queue. Start one:"
    assert (paused.text, paused.as_dict()["shards"]) == ("Shard 2: Queue mail is paused.", [2])


def test_names_and_durations_of_shards():
    found = {shard: incidents(row(queued=1, oldest_seconds=400.0 + shard)) for shard in (0, 1)}
    (late,) = of_shards(found)
    assert (late.values["duration"], late.values["waiting"], late.since) == (401.0, 2, ago(401))
    found = {
        0: [workers_quiet.incident(values={"names": ["a", "b"]})],
        1: [workers_quiet.incident(values={"names": ["b", "c"]})],
    }
    assert of_shards(found)[0].values["names"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("lag", "text", "since"),
    [
        (OutboxLag(jobs=5, oldest_seconds=59.0), "", None),
        (OutboxLag(jobs=1, oldest_seconds=60.0), "1 job waits in the outbox, for 60 s.", ago(60)),
        (OutboxLag(jobs=5000, oldest_seconds=120.0), "5,000 jobs wait in the outbox, the oldest for 2 min.", ago(120)),
        (
            OutboxLag(jobs=1, oldest_seconds=60.0, oldest_error="Queue mail is full.", oldest_queue="mail"),
            "1 job waits in the outbox, for 60 s. The oldest was refused: Queue mail is full.",
            ago(60),
        ),
        (OutboxLag(jobs=0, oldest_seconds=0.0, error="no table"), "The database did not say how many jobs", None),
    ],
)
def test_a_lag_of_the_outbox_is_told(lag, text, since):
    found = incidents(row(), lag=lag)
    assert [(each.text.startswith(text), each.severity, each.since) for each in found] == (
        [(True, Severity.CRITICAL, since)] if text else []
    )
    assert all(each.actions[0] is Action.SHOW_OUTBOX for each in found if each.kind == "outbox_lag")


def test_what_endangers_jobs_in_redis_is_told():
    warnings = ["evicts", "replica", "log_failed", "snapshot_failed", "volatile", "full", "nearly_full", "connections"]
    found = incidents(row(), warnings=warnings, used_memory=900_000, max_memory=1_000_000)
    assert sorted(each.kind for each in found) == sorted(f"redis_{warning}" for warning in warnings)
    assert all("Redis" in each.text and each.since is None for each in found)


@pytest.mark.parametrize(("behind", "is_it"), [(30.0, True), (0.5, False)])
def test_a_clock_that_was_set_back_is_told(behind, is_it):
    assert kinds(row(clock_behind_seconds=behind)) == ["clock_behind"] * is_it


def test_lost_data_is_told_with_its_time():
    (found,) = incidents(row(), data_lost_ms=1_770_091_200_000)
    assert (found.kind, found.since) == ("data_lost", datetime(2026, 2, 3, 4, tzinfo=timezone.utc))
    assert "Redis lost its data" in found.text


def test_the_worst_comes_first():
    found = incidents(row(queued=5, paused=True), workers=[], warnings=["volatile", "replica"])
    assert [each.severity for each in found] == [Severity.CRITICAL] * 2 + [Severity.WARNING] * 2
    assert found[0].kind == "no_worker"


def test_kinds_may_be_ignored():
    with override_settings(RTQ={"INCIDENTS": {"ignore": ["redis_volatile"]}}):
        assert kinds(row(), warnings=["volatile", "replica"]) == ["redis_replica"]


def test_kinds_may_be_critical():
    late = row(queued=5, oldest_seconds=400.0)
    assert [each.severity for each in incidents(late)] == [Severity.WARNING]
    with override_settings(RTQ={"INCIDENTS": {"critical": ["long_wait"]}}):
        assert [(each.kind, each.severity) for each in incidents(late)] == [("long_wait", Severity.CRITICAL)]


def test_their_number_is_bounded():
    assert len(kinds(*[row(f"q{n}", dead=1, counts={"dead": minutes(n)}) for n in range(1, 200)])) == 50


def test_the_text_is_in_the_language_of_the_reader():
    (found,) = incidents(row(paused=True))
    with translation.override("pt-br"):
        assert found.text == "Fila mail está em pausa."


@pytest.fixture
def some_failed(monkeypatch):
    """A kind with a further sentence that has two forms."""
    latest = ngettext_lazy("Latest: %(error)s.", "Latest: %(error)s.", "number")
    kind = QUEUE.warning("Some failed", "%(count)s jobs failed.", also={"latest": latest})
    kind.kind = "some_failed"
    monkeypatch.setitem(DETECTORS, kind.kind, kind)
    return kind


def test_what_an_error_says_is_not_mistaken_for_the_place_of_the_subject(some_failed):
    found = some_failed.incident(queue="mail", count=2, error="bad \0 byte")
    assert found.text == "Queue mail: 2 jobs failed. Latest: bad \0 byte."


@pytest.mark.parametrize("error", [None, ""])
def test_a_further_sentence_needs_its_values_in_each_form(some_failed, error):
    found = some_failed.incident(queue="mail", count=2, error=error)
    assert (found.text, "error" in found.values) == ("Queue mail: 2 jobs failed.", False)
