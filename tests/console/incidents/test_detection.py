"""All incidents together, and those of the server and the outbox."""

from datetime import datetime, timezone

import pytest
from django.test import override_settings
from django.utils import translation

from django_rtq.console.incident_options import KINDS
from django_rtq.console.incidents import Severity, detection, queues, read_incidents, schedules, workers
from django_rtq.console.incidents.incident import TEXTS
from django_rtq.core.broker.server_info import PROBLEMS
from django_rtq.databases.outbox import OutboxLag
from tests.console.incidents.overviews import ago, incidents, kinds, minutes, row
from tests.support.jobs import QUEUE, dead_job, queued_job


def test_every_kind_has_a_text():
    of_server = {f"redis_{name}" for name in PROBLEMS}
    assert set(KINDS) <= TEXTS.keys() | of_server
    assert of_server <= set(KINDS)


@pytest.mark.parametrize("module", [queues, schedules, workers])
def test_every_detector_is_called(module):
    found = {name for name, each in vars(module).items() if not name.startswith("_") and is_detector(each)}
    assert found <= vars(detection).keys(), "console/incidents/detection.py: list it"


def is_detector(each):
    return getattr(each, "__annotations__", {}).get("return") == "Iterator[Incident]"


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


@pytest.mark.parametrize(
    ("warning", "severity"),
    [
        ("evicts", Severity.CRITICAL),
        ("replica", Severity.CRITICAL),
        ("log_failed", Severity.CRITICAL),
        ("snapshot_failed", Severity.CRITICAL),
        ("volatile", Severity.WARNING),
        ("full", Severity.CRITICAL),
        ("nearly_full", Severity.WARNING),
        ("connections", Severity.WARNING),
    ],
)
def test_what_endangers_jobs_in_redis_is_told(warning, severity):
    (found,) = incidents(row(), warnings=[warning], used_memory=900_000, max_memory=1_000_000)
    assert (found.kind, found.severity, found.since) == (f"redis_{warning}", severity, None)
    assert "Redis" in found.text


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
        assert found.text == "A fila mail está em pausa."


def test_the_id_is_that_of_the_subject():
    first, again, other = (incidents(row(name, paused=True))[0] for name in ("mail", "mail", "low"))
    assert first.id == again.id != other.id


def test_reading_takes_three_round_trips(broker, round_trips):
    dead_job(broker)
    queued_job(broker)
    round_trips.clear()

    found = read_incidents()

    assert len(round_trips) == 3
    assert {(each.kind, each.queue) for each in found} >= {("no_worker", ""), ("dead_letters", QUEUE)}
