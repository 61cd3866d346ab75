"""rtq_shards drain: jobs and outcomes of a closed shard go to the open ones, and old handles find them there."""

import io
import os
import signal
import threading
from collections import Counter
from contextlib import suppress

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from django_rtq import BrokerUnavailable, JobFailed, JobHandle, JobNotFound, get_inspector, signals, workflow
from django_rtq.broker.brokers import close_brokers, get_broker, substitute_broker
from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.task_backends import shard_place
from django_rtq.exceptions import BrokerRefused
from django_rtq.inspector.carrying import Carrier, current_place
from django_rtq.inspector.places import view_backend
from django_rtq.inspector.selection import Selection
from django_rtq.inspector.sweep import Sweep
from django_rtq.internal_tasks import enqueue_rest
from django_rtq.jobs.job import new_job_id, with_shard
from django_rtq.testing import drain
from tests.app import django_tasks, tasks
from tests.app.step_tasks import walk
from tests.app.workflow_steps import double
from tests.shards.conftest import client_of, waiting
from tests.shards.test_workers import environment_of, worker  # noqa: F401
from tests.support.forked_commands import ForkedCommand
from tests.support.redis_server import LEASE_SECONDS, UNREACHABLE
from tests.support.waiting import wait_until

OLD = 1  # the shard that is drained
WAITING = 300


def run(*arguments):
    output = io.StringIO()
    call_command(*arguments, stdout=output, stderr=output)
    return output.getvalue()


def left_by_drain():
    """What rtq_shards drain says that it cannot carry."""
    output = io.StringIO()
    with pytest.raises(CommandError, match="Shard 1 is not empty"):
        call_command("rtq_shards", "drain", OLD, stdout=output, stderr=output)
    return output.getvalue()


def run_jobs(shard):
    """Run the waiting jobs of a shard in this process."""
    with substitute_broker(get_broker(shard_place(shard))):
        drain(raise_errors=False)


@pytest.fixture
def settings_with(servers, shards):
    """Use other settings until the end of the test: settings_with(redis of shard 1, closed=True)."""
    blocks = []

    def change(redis=servers[OLD].url, *, closed=True, **options):
        places = {0: servers[0].url} if redis is None else {0: servers[0].url, OLD: {"redis": redis, "closed": closed}}
        close_brokers()
        block = override_settings(RTQ={"SHARDS": places, "LEASE_SECONDS": LEASE_SECONDS, **options})
        block.enable()
        blocks.append(block)

    yield change
    close_brokers()
    for block in reversed(blocks):
        block.disable()


def old(name, task=tasks.note, **options):
    """A job in the shard that is drained."""
    return task.using(client=client_of(OLD), **options).delay(name)


def seed():
    """Jobs in all states, with an outcome: name -> handle."""
    handles = {"dead": old("dead", tasks.bury), "finished": old("finished")}
    run_jobs(OLD)
    return {
        **handles,
        **{f"job {n}": old(f"job {n}") for n in range(3)},
        "later": old("later", run_after=600),
        "unique": old("unique", unique=True),
    }


def check(handles, journal):
    """Each job has run once at most, none is lost, and old handles read their ends."""
    waiting_names = [name for name in handles if name.startswith("job") or name == "unique"]
    run_jobs(0)
    assert {name: handles[name].get(1) for name in (*waiting_names, "finished")} == {
        name: name for name in (*waiting_names, "finished")
    }
    assert (handles["later"].state, handles["dead"].state) == ("scheduled", "dead")
    with pytest.raises(JobFailed):
        handles["dead"].get(1)
    counts = Counter(journal.names("start"))
    assert [counts[name] for name in (*waiting_names, "finished")] == [1] * (len(waiting_names) + 1)
    assert counts["later"] == 0


def test_all_goes_on_and_old_handles_find_it(settings_with, shards, journal):
    handles = seed()
    many = [old(f"{n}") for n in range(60)]
    told = []
    signals.job_carried.connect(
        lambda job_ids, shard, **_: told.append((shard, *job_ids)), weak=False, dispatch_uid="test"
    )
    settings_with()
    assert "Would carry 66 jobs and 1 outcome of shard 1" in run("rtq_shards", "drain", OLD, "--dry-run")

    assert "Carried 66 jobs and 1 outcome of shard 1." in run("rtq_shards", "drain", OLD)

    signals.job_carried.disconnect(dispatch_uid="test")
    assert {(shard, job_id) for shard, *ids in told for job_id in ids} == {
        (0, handle.id) for handle in (*handles.values(), *many)
    }
    assert waiting(shards[OLD]) == 0
    ids = [handle.id for handle in many]
    page = get_inspector().job_list.page("default", "queued", limit=200).jobs
    assert [job.id for job in page if job.id in ids] == ids  # in their order
    check(handles, journal)
    assert [handle.get(1) for handle in many] == [f"{n}" for n in range(60)]
    assert handles["later"].cancel() == "cancelled"
    assert "Carried 0 jobs and 0 outcomes" in run("rtq_shards", "drain", OLD)


def test_jobs_are_found_when_the_server_is_off_and_when_it_is_taken_out(settings_with, journal):
    handles = seed()
    settings_with()
    run("rtq_shards", "drain", OLD)
    settings_with(UNREACHABLE)
    assert handles["later"].state == "scheduled"
    assert handles["finished"].get(1) == "finished"
    assert async_to_sync(handles["later"].astate)() == "scheduled"

    settings_with(None)
    run("rtq_shards", "apply")

    check(handles, journal)
    assert handles["later"].id in run("rtq_jobs", "show", handles["later"].id)
    assert async_to_sync(handles["finished"].aget)(1) == "finished"
    with pytest.raises(JobNotFound):
        JobHandle(with_shard(new_job_id(), OLD), "default").refresh()


class Killed(BaseException):
    """The command is killed."""


class Kill:
    """Ends a drain at its round trip number `at`, before or after it. Counts them."""

    def __init__(self, monkeypatch, at, moment):
        self._monkeypatch, self._at, self._moment = monkeypatch, at, moment
        self.number = 0

    def run(self):
        """Whether it was killed."""
        execute_each = RedisClient.execute_each

        def counted(client, *arguments, **options):
            self.number += 1
            if (self.number, self._moment) == (self._at, "before"):
                raise Killed
            replies = execute_each(client, *arguments, **options)
            if self.number == self._at:
                raise Killed
            return replies

        with self._monkeypatch.context() as patch:
            patch.setattr(RedisClient, "execute_each", counted)
            try:
                Carrier(OLD).run()
            except Killed:
                return True
        return False


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("are_working", [False, True])
def test_killed_between_any_two_steps_it_loses_nothing_and_nothing_runs_twice(
    settings_with, shards, journal, monkeypatch, moment, are_working
):
    at, was_killed = 1, True
    while was_killed:
        for client in shards:
            client.flushall()
        journal.path.unlink(missing_ok=True)
        settings_with(closed=False)
        handles = seed()
        settings_with()
        was_killed = Kill(monkeypatch, at, moment).run()
        if are_working:  # workers of both shards go on
            for shard in (OLD, 0):
                run_jobs(shard)
        assert {name: handle.state for name, handle in handles.items() if name in ("later", "dead", "finished")} == {
            "later": "scheduled",
            "dead": "dead",
            "finished": "succeeded",
        }

        assert Carrier(OLD).run().is_complete
        check(handles, journal)
        assert not any(b"arriv" in key for key in shards[0].scan_iter(count=1000))
        at += 1
    assert at > 15


def test_a_reply_that_is_lost_is_asked_for_again(settings_with, shards, journal, monkeypatch):
    handles = seed()
    settings_with()
    exchange = RedisClient._exchange
    lost = set()

    def lossy(client, commands, **options):
        replies = exchange(client, commands, **options)
        if commands[0][0] == b"EVALSHA" and (place := (client, commands[0][1])) not in lost:
            lost.add(place)
            error = BrokerUnavailable("lost")
            error.is_connection_lost = True
            raise error
        return replies

    with monkeypatch.context() as patch:
        patch.setattr(RedisClient, "_exchange", lossy)
        assert Carrier(OLD).run().is_complete
    assert len(lost) >= 4
    check(handles, journal)


def test_of_two_drains_the_older_one_ends(settings_with, shards, journal):
    handles = seed()
    settings_with()
    older, newer = Carrier(OLD), Carrier(OLD)
    older._begin()
    packed = older.carry("default", [handles["job 0"].id])
    assert packed == {handles["job 0"].id: "carried 0"}
    newer._begin()

    with pytest.raises(BrokerRefused, match="Another drain of shard 1 has begun"):
        older.carry("default", [handles["job 1"].id])

    assert newer.run().is_complete
    check(handles, journal)


def test_a_job_that_changes_meanwhile_is_carried_as_it_is_then(settings_with, shards, journal, monkeypatch):
    handles = seed()
    settings_with()
    carrier = Carrier(OLD)
    receive = carrier._receive
    changes = [lambda: run_jobs(OLD)]

    def changed(*arguments):
        if changes:
            changes.pop()()
        return receive(*arguments)

    monkeypatch.setattr(carrier, "_receive", changed)
    assert carrier.run().is_complete
    check(handles, journal)


def test_who_waits_for_a_job_goes_on_waiting_in_its_new_shard(settings_with, shards, journal):
    handle = old("job")
    settings_with()
    ends = []
    threads = [
        threading.Thread(target=lambda: ends.append(handle.get(60))),
        threading.Thread(target=lambda: ends.append(async_to_sync(handle.aget)(60))),
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: shards[OLD].exists("{rtq:default}:waiters"))
    run("rtq_shards", "drain", OLD)
    wait_until(lambda: shards[0].exists("{rtq:default}:waiters"))
    run_jobs(0)
    for thread in threads:
        thread.join(60)

    assert ends == ["job", "job"]
    close_brokers()


def test_a_job_on_hold_is_found(settings_with, shards):
    handle = old("job")
    settings_with()
    carrier = Carrier(OLD)
    carrier._begin()
    carrier._admit = lambda *arguments: None
    carrier.carry("default", [handle.id])

    assert (handle.state, handle.refresh().args) == ("queued", ["job"])
    assert current_place("", handle.id) == ""
    handles = [handle]
    assert Carrier(OLD).run().is_complete
    assert handles[0].state == "queued"


def test_a_page_does_not_wait_for_the_old_shard_if_that_hangs(settings_with, servers, admin_client, patient_clients):
    carried, stayed = old("carried"), old("stayed")
    settings_with()
    carrier = Carrier(OLD)
    carrier._begin()
    carrier.carry("default", [carried.id])
    patient_clients.clear()
    servers[OLD].pause()
    try:
        answers = [admin_client.get(f"/admin/django_rtq/job/{handle.id}/") for handle in (carried, stayed)]
        found = admin_client.get("/admin/django_rtq/job/search/", {"q": stayed.id})
        of_one = admin_client.get("/admin/django_rtq/job/search/", {"q": stayed.id, "shard": "0"})
    finally:
        servers[OLD].resume()
    wait_until(lambda: not any(thread.name == "rtq-shard-1" for thread in threading.enumerate()))

    assert [answer.status_code for answer in answers] == [200, 503]
    assert (found.status_code, of_one.status_code) == (200, 503)
    for answer in (answers[1], of_one):
        assert "Shard 1 does not answer." in answer.content.decode()
    assert "Shard 1 has not answered since" in found.content.decode()
    assert get_broker(shard_place(OLD)).redis not in patient_clients


def test_what_runs_stays_and_what_waits_for_its_end(settings_with, shards, journal):
    running = old("a", unique=True)
    broker = get_broker(shard_place(OLD))
    broker.sign_on(["default"], "w")
    (claimed,) = broker.claim("w", ["default"], 1).claimed
    assert claimed.ids == [running.id.encode()]
    old("a", unique=True, unique_on_conflict="rerun")
    settings_with()

    text = left_by_drain()

    assert "1 wait for the end of a job with the same unique key" in text
    assert "1 are running" in text
    assert running.state == "running"


def test_parts_of_actions_stay(settings_with, shards):
    with view_backend(shard_place(OLD)):
        next(enqueue_rest(Sweep(verb="discard", selection=Selection(until_ms=1)), ["default"]))
    settings_with()

    assert "1 are parts of actions on this shard" in left_by_drain()
    run_jobs(OLD)
    assert "Carried 0 jobs and 1 outcome" in run("rtq_shards", "drain", OLD)


def test_workflows_stay_in_their_shard(servers, shards, settings_with):
    with workflow("sum", client=client_of(0)) as flow:
        flow.map(double, [1, 2, 3])
    other = tasks.note.using(client=client_of(0)).delay("x")
    places = {0: {"redis": servers[0].url, "closed": True}, 1: servers[1].url}
    with override_settings(RTQ={"SHARDS": places, "LEASE_SECONDS": LEASE_SECONDS}):
        output = io.StringIO()
        with pytest.raises(CommandError, match="Shard 0 is not empty"):
            call_command("rtq_shards", "drain", 0, stdout=output, stderr=output)
        assert "3 belong to workflows, which stay in their shard" in output.getvalue()
        assert "Carried 1 job" in output.getvalue()
        assert other.state == "queued"
        assert waiting(shards[1]) == 1
        close_brokers()


@pytest.mark.parametrize("what", ["queue", "task", "client"])
def test_what_is_paused_has_to_be_paused_there(settings_with, shards, what):
    old("x")
    inspector = get_inspector(shard_place(OLD))
    if what == "queue":
        inspector.pause("default")
    elif what == "task":
        inspector.task_pauses.pause_task("tests.app.tasks.note", "default", by="eve")
    else:
        inspector.limits.pause_client("default", client_of(OLD), by="eve")
    settings_with()

    with pytest.raises(CommandError, match=f"Paused in shard 1, and not in all open shards.*: {what} "):
        run("rtq_shards", "drain", OLD)
    assert waiting(shards[OLD]) == 1


def test_an_open_or_unknown_shard_is_refused(shards):
    with pytest.raises(CommandError, match=r"Shard 1 gets new jobs\. First mark it as closed"):
        run("rtq_shards", "drain", OLD)
    with pytest.raises(CommandError, match="There is no shard 7"):
        run("rtq_shards", "drain", 7)


def test_a_job_with_steps_and_a_result_of_django_tasks(settings_with, shards, journal):
    walked = old("walk", walk)
    results = [django_tasks.add.enqueue(n) for n in range(8)]
    settings_with()
    run("rtq_shards", "drain", OLD)

    run_jobs(0)
    assert [step["name"] for step in walked.get(1)] == [f"walk {number}" for number in range(3)]
    for result in results:
        assert django_tasks.add.get_result(result.id).id == result.id
        result.refresh()


@pytest.mark.long
def test_killed_again_and_again_while_old_workers_and_producers_go_on(
    worker,  # noqa: F811
    servers,
    shards,
    settings_with,
    journal,
    tmp_path,
):
    settings_with(closed=False)
    dead, finished = ([old(f"{word} {n}", task) for n in range(20)] for word, task in ENDED.items())
    run_jobs(OLD)
    later = [old(f"later {n}", run_after=600) for n in range(50)]
    names = [f"job {n}" for n in range(WAITING)]
    jobs = tasks.note.using(client=client_of(OLD)).delay_many([((name,), {}) for name in names])
    worker("--processes", 1)
    places = {0: servers[0].url, OLD: {"redis": servers[OLD].url, "closed": True}}
    environment = {**os.environ, **environment_of(servers, tmp_path, SHARDS=places)}
    for number in range(8):
        jobs.append(old(name := f"more {number}"))
        names.append(name)
        drain_and_kill(shards[OLD], environment, tmp_path / f"drain-{number}.log")
    settings_with()

    wait_until(is_drained, 120)

    assert [job.get(120) for job in jobs] == names
    counts = Counter(journal.names("start"))
    assert {name: counts[name] for name in names} == dict.fromkeys(names, 1)
    assert ({job.state for job in later}, {job.state for job in dead}) == ({"scheduled"}, {"dead"})
    assert [job.get(1) for job in finished] == [f"finished {n}" for n in range(20)]
    assert waiting(shards[OLD]) == 0


ENDED = {"dead": tasks.bury, "finished": tasks.note}


def drain_and_kill(client, environment, log):
    """Kill rtq_shards drain when it has handed over some more jobs."""
    before = client.hlen("{rtq:default}:carried")
    command = ForkedCommand(["rtq_shards", "drain", str(OLD)], environment, log)
    wait_until(lambda: client.hlen("{rtq:default}:carried") > before or command.poll() is not None)
    with suppress(ProcessLookupError):
        command.send_signal(signal.SIGKILL)
    command.wait(30)


def is_drained():
    with suppress(CommandError):
        run("rtq_shards", "drain", OLD)
        return True
    return False
