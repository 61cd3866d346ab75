"""Slots of schedules that passed and started nothing, and schedules that cannot run."""

import pytest
from django.test import override_settings

from django_rtq import every, task
from django_rtq.console.incidents import Seen, Severity, find_incidents
from django_rtq.console.incidents.schedules import known_schedules
from django_rtq.core.scheduler.registry import declared_schedules
from django_rtq.core.scheduler.scheduler import Dispatcher
from django_rtq.core.tasks import registry
from django_rtq.models import Schedule
from tests.console.incidents.overviews import overview, row, worker
from tests.support.jobs import QUEUE

pytestmark = pytest.mark.usefixtures("no_tasks")

MINUTE_MS = 60_000
GONE = {"scheduler_seconds": 400.0}  # the scheduler of a queue


def report(*args):
    """A function to be made a task."""


@pytest.fixture
def fired(redis, broker):
    """Let the schedules of the code have fired last so many minutes ago."""

    def fired(minutes):
        now_ms, _ = broker.schedules.states([])
        for entry in declared_schedules(broker.config):
            broker.schedules.begin(entry.task.queue, entry.name, entry.definition, now_ms - minutes * MINUTE_MS)

    return fired


def found(*rows, **options):
    """The incidents of schedules, with these queues."""
    every_one = find_incidents(Seen(overview=overview(*rows, **options), schedules=known_schedules("")))
    return [each for each in every_one if each.kind.startswith("schedule")]


def test_a_slot_that_passed_while_the_scheduler_was_dead_is_missed(broker, fired):
    task(queue_name="night", schedule=[every(minutes=1), every(minutes=2, name="zeta")])(report)
    fired(10)

    (missed,) = found(row("night", **GONE), workers=[worker()])

    assert (missed.kind, missed.severity, missed.queue) == ("schedule_missed", Severity.CRITICAL, "night")
    assert missed.text == (
        "Queue night: 2 schedules were due and started no job, tests.console.incidents.test_schedules.report "
        "among them. "
        "No scheduler is running for this queue. Start one:"
    )
    assert missed.command == "python manage.py rtq_worker --queues night"
    now_ms, _ = broker.schedules.states([])
    assert 8 * MINUTE_MS < now_ms - missed.since.timestamp() * 1000 < 10 * MINUTE_MS


LOG = "its log says why, or it runs another version of the project. "
START = "Start one: python manage.py rtq_scheduler --queues mail"  # its worker has none


@pytest.mark.parametrize(
    ("schedule", "ago", "scheduler", "ends"),
    [
        (every(minutes=1), 10, GONE, [START]),
        (every(minutes=1), 10, {}, [LOG]),
        (every(minutes=1), 2, GONE, []),  # the first slot is less than two minutes old
        (every(hours=1, missed="skip"), 130, GONE, [START]),
        (every(hours=1, missed="skip"), 130, {}, []),
    ],
)
def test_what_is_missed_and_why_is_told(broker, fired, schedule, ago, scheduler, ends):
    task(queue_name="mail", schedule=schedule)(report)
    fired(ago)

    said = [f"{each.text} {each.command}" for each in found(row("mail", **scheduler))]

    assert [text[-len(end) :] for text, end in zip(said, ends, strict=True)] == ends


def test_what_fires_is_not_missed(broker, fired):
    task(queue_name=QUEUE, schedule=every(minutes=1))(report)
    fired(10)
    assert found(row(QUEUE)) != []

    dispatcher = Dispatcher(broker, [QUEUE])
    dispatcher.fire_due()

    assert found(row(QUEUE)) == []


def test_a_schedule_that_was_switched_off_or_is_new_has_missed_nothing(broker, fired):
    task(queue_name="mail", schedule=[every(minutes=1, name="off")])(report)
    fired(10)
    broker.schedules.set_enabled("off", enabled=False)
    assert found(row("mail", **GONE)) == []

    broker.schedules.set_enabled("off", enabled=True)  # it begins anew
    assert found(row("mail", **GONE)) == []


def test_a_slot_that_was_skipped_on_purpose_is_not_missed(broker, fired):
    task(queue_name=QUEUE, schedule=every(minutes=1, overlap="skip"))(report)
    fired(10)
    now_ms, _ = broker.schedules.states([])
    (entry,) = declared_schedules(broker.config)
    slot_ms = now_ms - now_ms % MINUTE_MS
    assert entry.fire(broker, slot_ms - MINUTE_MS) == "fired"
    assert entry.fire(broker, slot_ms) == "overlap"

    assert found(row(QUEUE)) == []


def test_our_own_schedules_are_not_reported(broker, fired):
    task(queue_name="mail", exactly_once=True)(report)
    assert [entry.task.internal for entry in declared_schedules(broker.config)] == [True]
    fired(300)

    assert found(row("mail", **GONE)) == []


@pytest.mark.django_db(transaction=True)
def test_rows_of_the_database_are_known_from_redis(broker, fired):
    task(queue_name="mail")(report)
    nightly = Schedule(name="nightly", task=f"{__name__}.report", every=60)
    nightly.save()
    (status,) = known_schedules("")
    now_ms, _ = broker.schedules.states([])
    broker.schedules.begin("mail", "nightly", status.entry.definition, now_ms - 10 * MINUTE_MS)
    assert [each.values["schedule"] for each in found(row("mail", **GONE))] == ["nightly"]

    nightly.delete()
    assert found(row("mail", **GONE)) == []


@pytest.mark.django_db(transaction=True)
def test_a_row_whose_task_is_gone_cannot_run(broker):
    task(report)
    nightly = Schedule(name="nightly", task=f"{__name__}.report", every=60)
    nightly.save()
    registry._tasks.clear()

    (invalid,) = found(row())
    assert (invalid.kind, invalid.severity) == ("schedule_invalid", Severity.WARNING)
    assert invalid.text.startswith(
        "1 schedule cannot run: nightly. No task 'tests.console.incidents.test_schedules.report' is"
    )

    nightly.enabled = False
    nightly.save()
    assert found(row()) == []


def test_settings_that_are_wrong_are_told(redis, settings):
    with override_settings(RTQ={**settings.RTQ, "SCHEDULES": {"beat": {"task": "shop.gone", "every": 9}}}):
        (invalid,) = found(row())

    assert "No task 'shop.gone' is registered here" in invalid.text
