"""The signals: sent once, by one of the schedulers."""

import pytest

from django_rtq import signals
from django_rtq.console.incidents import Incident, Seen, Severity, find_incidents
from django_rtq.console.incidents.watcher import INTERVAL_SECONDS, JITTER_SECONDS, IncidentWatcher
from django_rtq.core.scheduler.scheduler import scheduler_loops
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.supervisor.supervisor import Supervisor
from tests.console.incidents.overviews import failed, minutes, overview, row, running, worker
from tests.support.jobs import QUEUE

RTQ_OPTIONS = {"INCIDENTS": {"ignore": ["redis_volatile", "queues_without_worker"]}}


@pytest.fixture
def told(monkeypatch):
    """What the receivers were told: (opened or closed, incident) each."""
    found = []
    for what, signal in (("opened", signals.incident_opened), ("closed", signals.incident_closed)):
        monkeypatch.setattr(signal, "receivers", [])
        signal.connect(lambda incident, what=what, **_: found.append((what, incident)), weak=False)
    return found


@pytest.fixture
def queue(broker):
    """A queue with a worker."""
    broker.register_queues([QUEUE])
    return QUEUE


@pytest.fixture
def later(redis, broker):
    """Lets time pass since the last view."""

    def passes(seconds=INTERVAL_SECONDS + 1):
        key = broker.keys.of(QUEUE).incidents
        seen, _, token = redis.hget(key, "").decode().partition(" ")
        redis.hset(key, "", f"{int(seen) - round(seconds * 1000)} {token}")

    return passes


def test_without_receivers_nobody_looks(broker, monkeypatch):
    for signal in (signals.incident_opened, signals.incident_closed):
        monkeypatch.setattr(signal, "receivers", [])
    assert [loop.name for loop in scheduler_loops(broker, [QUEUE])] == ["scheduler"]


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("scheduler", "count"), [(True, 1), (False, 0)])
def test_with_receivers_each_scheduler_looks(broker, scheduler, count):
    supervisor = Supervisor(broker, WorkerOptions(queues=[QUEUE], scheduler=scheduler))
    with supervisor._wakeup.install_handlers():  # which closes its sockets
        assert sum(isinstance(loop, IncidentWatcher) for loop in supervisor._loops) == count


def test_several_schedulers_send_each_signal_once(broker, rtq, queue, told, later):
    schedulers = [IncidentWatcher(broker) for _ in range(3)]

    def look():
        for scheduler in schedulers:
            scheduler.tick()

    broker.sign_on([queue], "w1")
    rtq.queues[queue].pause()
    look()
    assert told == []  # it may be over at once
    later()
    look()
    assert [(what, incident.kind, incident.queue) for what, incident in told] == [("opened", "queue_paused", queue)]
    assert told[0][1].text == "Queue default is paused."
    later()
    look()
    assert len(told) == 1

    rtq.queues[queue].resume()
    later()
    look()
    assert [(what, incident.kind) for what, incident in told[1:]] == [("closed", "queue_paused")]


def test_a_scheduler_waits_until_it_is_time_to_look(broker, queue, told, round_trips):
    first, second = IncidentWatcher(broker), IncidentWatcher(broker)
    assert INTERVAL_SECONDS <= first.tick() <= INTERVAL_SECONDS + JITTER_SECONDS
    round_trips.clear()

    assert 0 < second.tick() <= INTERVAL_SECONDS + JITTER_SECONDS
    assert len(round_trips) == 1


def test_a_receiver_that_fails_does_not_stop_others(broker, rtq, queue, told, later):
    def fails(**kwargs):
        raise ValueError("no mail")

    signals.incident_opened.connect(fails)
    signals.incident_opened.receivers.reverse()
    rtq.queues[queue].pause()
    broker.sign_on([queue], "w1")
    for _ in range(2):
        IncidentWatcher(broker).tick()
        later()
    assert [what for what, _ in told] == ["opened"]


def test_an_incident_is_stored_and_read_as_it_is():
    task = "shop.tasks.charge"
    found = find_incidents(
        Seen(
            overview=overview(
                row(dead=1, paused=True, dead_letter=failed(task, "a.Error", "no"), counts={"dead": minutes(3)}),
                row("low", scheduled=1, scheduler_seconds=500.0),
                workers=[worker(running(seconds=9000.0)), worker(name="w2", lease_left_seconds=-1.0)],
                warnings=["evicts"],
            )
        )
    )
    assert len(found) >= 6
    for incident in found:
        again = Incident.load(incident.dump())
        assert (again.id, again.text, again.since) == (incident.id, incident.text, incident.since)
        assert again.as_dict() == incident.as_dict()


def test_what_another_version_has_stored_is_read():
    found = Incident.load('{"kind": "no_worker", "severity": "critical", "new": 1}')
    assert found == Incident(kind="no_worker", severity=Severity.CRITICAL)
