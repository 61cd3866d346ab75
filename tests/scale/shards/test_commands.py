"""Commands, pages, metrics and checks of a project with shards."""

import io
import json
import re
from unittest.mock import Mock

import pytest
from django.test import override_settings

from django_rtq import cron, rtq, task
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import close_brokers, get_broker
from django_rtq.core.broker.task_backends import config_of, shard_place
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.checks import check_settings
from django_rtq.core.jobs.job import new_job_id, with_shard
from django_rtq.core.tasks.task import on_backend
from django_rtq.monitoring.prometheus import metrics_text
from tests.app import tasks
from tests.scale.shards.conftest import client_of
from tests.support import commands
from tests.support.commands import dead_letter
from tests.support.redis_server import LEASE_SECONDS, UNREACHABLE
from tests.support.shard_servers import on_servers

NOTE = "tests.app.tasks.note"


def run(*arguments, code=0):
    """What a command says that ends with this code."""
    output = io.StringIO()
    ran = commands.run(*arguments, out=output, err=output)
    assert ran.code == code, ran
    return ran.out + ran.error


def enqueue(shard, name="x"):
    return tasks.note.using(client=client_of(shard)).delay(name)


@pytest.fixture
def half(servers, clients):
    """Settings with a shard that does not answer."""
    with on_servers([servers[0].url, UNREACHABLE], LEASE_SECONDS=LEASE_SECONDS):
        yield
        close_brokers()


def test_a_command_is_about_all_shards_or_one(shards, monkeypatch):
    for shard in (0, 1, 1):
        enqueue(shard)
    start_worker(1, "default")

    text = run("rtq")
    assert re.findall(r"default +open +(\d+)", text) == ["3"]
    assert re.search(r"^WORKER .* SHARD .*\nhost:1:x .* 1 ", text, re.MULTILINE)
    assert re.findall(r"default +no worker +(\d+)", run("rtq", "--shard", "0")) == ["1"]
    assert re.findall(r"default +open +(\d+)", run("rtq", "--queues", "default", "--shard", "1")) == ["2"]
    assert "There is no shard 7" in run("rtq", "--shard", "7", code=64)


def test_json_of_all_shards_is_that_of_one_place(shards):
    here, there = enqueue(0, "here"), enqueue(1, "there")
    start_worker(1, "default")

    def said(*arguments):
        return json.loads(run(*arguments, "--json"))

    (queue,) = [each for each in said("rtq_queues", "list") if each["queued"]]
    assert (queue["name"], queue["queued"], queue["workers"]) == ("default", 2, 1)
    names = [each["task"] for each in said("rtq_tasks", "list")]
    assert len(names) == len({*names})
    assert [(each["name"], each["shard"]) for each in said("rtq_workers", "list")] == [("host:1:x", 1)]
    assert said("rtq_workers", "quiet", "host:1:x") == {"asked": ["s"], "failed": []}
    clients = said("rtq_clients", "list", "default")["clients"]
    assert {(each["client"], *each["shards"]) for each in clients} == {(client_of(shard), shard) for shard in (0, 1)}
    jobs = {(job["shard"], job["id"]) for job in said("rtq_jobs", "list")["jobs"]}
    assert jobs == {(0, here.id), (1, there.id)}
    assert [(job["shard"], job["id"]) for job in said("rtq_jobs", "show", there.id)] == [(1, there.id)]
    state = said("rtq")
    assert [(each["name"], each["queued"]) for each in state["queues"]] == [("default", 2)]
    assert ("default" in state["unserved"], [worker["shard"] for worker in state["workers"]]) == (True, [1])
    assert said("rtq", "--shard", "1")["workers"][0]["shard"] == 1
    assert said("rtq_queues", "pause", "default")["changed"] == ["default"]


def test_the_check_of_all_shards_is_one_answer(half):
    enqueue(0)

    answer = json.loads(run("rtq", "--check", "--json", code=2))

    assert answer["status"] == "critical"
    assert {(1, "redis_unreachable"), (0, "no_worker")} <= {
        (*each["shards"], each["kind"]) for each in answer["incidents"]
    }


def test_a_client_is_erased_where_the_command_looks(shards):
    job = enqueue(1)

    run("rtq_clients", "erase", client_of(1), "--shard", "0", "--no-input")
    assert job.state == "queued"
    run("rtq_clients", "erase", client_of(1), "--no-input")
    assert readers_of(shard_place(1)).queues.get("default").queued == 0


def test_ids_lead_to_their_shards(shards):
    here, there = enqueue(0, "here"), enqueue(1, "there")

    assert re.search(r"^Shard: +1$", run("rtq_jobs", "show", there.id), re.MULTILINE)
    text = run("rtq_jobs", "show", there.id, here.id)
    assert "here" in text
    assert "there" in text
    run("rtq_jobs", "cancel", there.id, "--no-input")
    assert (here.state, there.state) == ("queued", "cancelled")


def test_what_matches_is_acted_on_in_all_shards(shards):
    jobs = [enqueue(shard) for shard in (0, 1, 1)]

    assert "Would cancel 3 jobs (default 3)" in run("rtq_jobs", "cancel", "--all", "--dry-run")
    assert "1 job was cancelled." in run("rtq_jobs", "cancel", "--all", "--limit", "1", "--no-input")
    assert "1 job was cancelled." in run("rtq_jobs", "cancel", "--client", client_of(1), "--no-input", "--limit", "1")
    assert sorted(job.state for job in jobs) == ["cancelled", "cancelled", "queued"]
    enqueue(0)
    assert "queue:default: 2 jobs were purged." in run("rtq_queues", "purge", "default", "--no-input")


@pytest.mark.parametrize("pause", ["rtq_queues pause default", "rtq_clients pause * x", "rtq_tasks pause * " + NOTE])
def test_a_dry_run_tells_what_one_of_the_shards_would_do(shards, pause):
    enqueue(0)
    enqueue(1)
    run(*pause.split(), "--shard", "1")

    assert "Would pause" in run(*pause.split(), "--dry-run")
    assert "is paused" in run(*pause.split())
    assert "already paused" in run(*pause.split(), "--dry-run")
    assert len(json.loads(run("rtq", "--json"))["queues"][0]["paused_clients"]) == ("clients" in pause)
    assert "resumed" in run(*pause.replace("pause", "resume").split())
    assert "Would pause" in run(*pause.split(), "--shard", "0", "--dry-run")
    assert "Would pause" in run(*pause.split(), "--shard", "1", "--dry-run")


def test_nothing_is_done_while_a_shard_does_not_answer(half):
    job = enqueue(0)

    for arguments in (
        ("rtq_jobs", "cancel", "--client", client_of(0), "--no-input"),
        ("rtq_queues", "pause", "default"),
        ("rtq_queues", "purge", "default", "--no-input"),
    ):
        assert "Shard 1 does not answer. Redis cannot be reached" in run(*arguments, code=1)
    assert (job.state, readers_of().queues.get("default").paused) == ("queued", False)
    assert "Queue default is paused." in run("rtq_queues", "pause", "default", "--shard", "0")
    assert "1 job was cancelled." in run("rtq_jobs", "cancel", job.id)


def test_what_was_requeued_elsewhere_is_no_error_while_another_shard_is_away(servers, clients):
    with on_servers([servers[0].url, UNREACHABLE], QUEUES={"bulk": {}}):
        letter = dead_letter(get_broker(shard_place(0)))

        assert "1 dead letter was requeued in queue bulk." in run("rtq_jobs", "requeue", letter, "--to", "bulk")
        close_brokers()


def test_a_limit_of_a_whole_queue_is_divided(servers, shards):
    enqueue(0)
    enqueue(1)
    run("rtq_clients", "limit", "default", "--whole-queue", "--max-running", "5", "--rate", "10/s")

    limits = [readers_of(shard_place(n)).clients.limits("default").limits for n in (0, 1)]
    assert [limit["max_running"].value for limit in limits] == [3, 2]
    assert [limit["rate"].value for limit in limits] == ["10/2s"] * 2
    rtq.clients["acme"].limit("default", max_running=1)
    whole = rtq.queues["default"].limits()
    assert (whole.limits["max_running"].value, whole.clients["acme"].limits["max_running"].value) == (5, 1)
    assert "Whole queue: Running jobs: 5 (set at run time)" in run("rtq_clients", "list", "default")
    for more in ((), ("--dry-run",)):
        said = run("rtq_clients", "limit", "default", "--whole-queue", "--max-running", "1", *more, code=64)
        assert "max_running 1 cannot be divided among 2 shards" in said
    run("rtq_clients", "limit", "default", "--whole-queue", "--max-running", "none", "--shard", "1")
    assert readers_of(shard_place(1)).clients.limits("default").limits["max_running"].value is None
    places = [server.url for server in servers]
    with on_servers(places, QUEUES={"default": {"shards": 1}}):
        run("rtq_clients", "limit", "default", "--whole-queue", "--max-running", "1")
        limits = [readers_of(shard_place(n)).clients.limits("default").limits for n in (0, 1)]
        assert [limit["max_running"].value for limit in limits] == [1, 1]
        assert "Running jobs: 1 (set at run time)" in run("rtq_clients", "list", "default")
        close_brokers()


@pytest.mark.django_db
def test_a_shard_that_is_away_may_have_what_the_others_do_not_have(half):
    for arguments, number in ((["rtq"], 2), (["rtq_schedule", "list"], 1)):
        assert run(*arguments, code=1).count("There is nothing in the other shards") == number


@pytest.mark.parametrize("action", ["cancel", "requeue", "run"])
def test_the_shard_of_a_job_is_named_if_it_is_away(half, action):
    here = enqueue(0)
    there = with_shard(new_job_id(), 1)
    assert re.search(r"Shard 1 does not answer\. .*reached", run("rtq_jobs", action, here.id, there, code=1))
    assert (here.state == "cancelled") == (action == "cancel")
    assert re.search(r"Shard 1 does not answer\. .*reached", run("rtq_jobs", "send", there, "approved", code=1))


@pytest.mark.parametrize("scope", ["--whole-queue", "--each-client", f"--client={client_of(1)}"])
def test_a_limit_that_one_shard_has_is_shown(shards, scope):
    enqueue(0)
    enqueue(1)
    run("rtq_clients", "limit", "default", scope, "--max-running", "5", "--shard", "1")
    assert "Running jobs: 5 (set at run time" in run("rtq_clients", "list", "default", "-v2")
    run("rtq_clients", "limit", "default", scope, "--rate", "7/s", "--shard", "0")
    text = run("rtq_clients", "list", "default", "-v2")
    assert "Running jobs: 5 (set at run time" in text
    assert "7/s (set at run time" in text


def test_a_limit_that_one_shard_lifts_is_that_of_the_others(shards):
    enqueue(0)
    for shard, number in enumerate(["none", "5"]):
        run("rtq_clients", "limit", "default", "--whole-queue", "--max-running", number, "--shard", str(shard))
    assert "Running jobs: 5 (set at run time)" in run("rtq_clients", "list", "default")


def test_a_backend_without_a_redis_of_its_own_is_all_shards(shards):
    enqueue(0)
    enqueue(1)

    with override_settings(TASKS={"default": {"BACKEND": "django_rtq.backend.RTQBackend"}}):
        assert re.findall(r"default +no worker +(\d+)", run("rtq", "--backend", "default")) == ["2"]
        assert rtq.at("default").jobs.count() == 2
        assert "Shards 0, 1" in run("rtq", "--check", "--backend", "default", code=2)
        assert "TASKS has no backend 'defualt'" in run("rtq_queues", "list", "--backend", "defualt", code=64)


def test_a_job_of_a_backend_with_a_redis_of_its_own_is_in_no_shard(shards):
    def shown(job, *options):
        (told,) = json.loads(run("rtq_jobs", "show", job.id, "--json", *options))
        return told.get("shard"), "Shard:" in run("rtq_jobs", "show", job.id, *options)

    own = {"BACKEND": "django_rtq.backend.RTQBackend", "QUEUES": [], "OPTIONS": {"DB": 5}}
    with override_settings(TASKS={"default": {"BACKEND": own["BACKEND"]}, "reports": own}):
        assert shown(enqueue(0)) == (0, True)
        assert shown(on_backend(tasks.note, "reports").delay("x"), "--backend", "reports") == (None, False)
        get_broker("reports").close()


def test_a_shard_that_is_away_is_named_and_the_others_are_shown(half, monkeypatch):
    job, away = enqueue(0), with_shard(new_job_id(), 1)

    for arguments, found in (
        (["rtq"], r"default +no worker +1 "),
        (["rtq_queues", "list"], r"default +no worker +1 "),
        (["rtq_jobs", "list"], job.id),
        (["rtq_jobs", "show", away, job.id], job.id),
        (["rtq_clients", "list", "default"], client_of(0)),
        (["rtq_tasks", "list"], "tests.app.tasks.note"),
        (["rtq_jobs", "list", "--client", "x"], "There is nothing in the other shards"),
        (["rtq_workers", "list"], "There is nothing in the other shards"),
        (["rtq_workers", "list", "w-1"], "There is nothing in the other shards"),
        (["rtq_workers", "list", "--queue", "of-1"], "There is nothing in the other shards"),
        (["rtq_jobs", "list", "--queue", "of-1"], "There is nothing in the other shards"),
    ):
        text = run(*arguments, code=1)
        assert re.search(found, text), text
        assert re.findall("shard .: .*reached", text) == ["shard 1: Redis cannot be reached"]
    assert "critical redis_unreachable: Shard 1: Redis cannot be reached" in run("rtq", "--check", code=2)
    monkeypatch.setattr("django_rtq.console.commands.rtq.sleep", Mock(side_effect=[None, KeyboardInterrupt]))
    text = run("rtq", "--watch")
    assert [len(re.findall(found, text)) for found in ("default +no worker +1 ", "shard 1: Redis")] == [2, 2]


def test_schedules_of_the_other_shards_are_shown(half, no_tasks):
    for shard, function in enumerate((tasks.note.func, tasks.sleep.func)):
        schedule = cron("0 5 * * *", name=f"of {shard}", args=["x"] * (shard + 1))
        task(client=client_of(shard), schedule=schedule)(function)

    text = run("rtq_schedule", "list", code=1)
    assert re.findall(r"^of \d|^shard 1: Redis cannot be reached", text, re.MULTILINE) == [
        "of 0",
        "shard 1: Redis cannot be reached",
    ]
    assert len(run("rtq_schedule", "run", "of 0").strip()) == 32
    assert "There is no schedule 'of 1' in the other shards" in run("rtq_schedule", "run", "of 1", code=1)


def start_worker(shard, queue):
    broker = for_workers(get_broker(shard_place(shard)))
    broker.sign_on([queue], "host:1:x")
    info = {"host": "host", "pid": 1, "queues": queue, "supervisor_name": "s"}
    broker.heartbeat([queue], {"host:1:x": info}, promote=False)


def test_a_shard_that_no_worker_serves_is_named(shards):
    for shard, queue in enumerate(["default", "mail"]):
        enqueue(shard)
        start_worker(shard, queue)

    text = run("rtq", "--check", code=2)

    assert re.findall("critical queue_unserved: (.*?): 1 job", text) == ["Shard 1: Queue default"]
    for_workers(get_broker(shard_place(1))).sign_off(["mail"], "host:1:x")
    assert "critical no_worker: Shard 1: " in run("rtq", "--check", code=2)


def test_metrics_have_the_shard_as_a_label(shards):
    for shard in (0, 1, 1):
        enqueue(shard)

    text = metrics_text()[1].decode()
    assert re.findall(r'rtq_jobs{queue="default",shard="(\d)",state="queued"} (\d)', text) == [("0", "1"), ("1", "2")]
    assert text.count("# TYPE rtq_jobs ") == 1
    assert 'rtq_shard_up{shard="1"} 1.0' in text


def test_metrics_of_the_others_while_a_shard_is_away(half):
    enqueue(0)

    text = metrics_text()[1].decode()
    assert 'rtq_jobs{queue="default",shard="0",state="queued"} 1' in text
    assert 'rtq_shard_up{shard="1"} 0.0' in text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"SHARDS": 0}, "a whole number from 1 to 1024"),
        ({"SHARDS": {0: "redis://a"}}, "a whole number from 1 to 1024"),
        ({"SHARDS": 2, "QUEUES": {"mail": {"max_running": 1}}}, "cannot be divided among 2 shards"),
    ],
)
def test_wrong_settings_are_named(options, text):
    with override_settings(RTQ={"REDIS": "redis://a", **options}):
        (error,) = check_settings()
    assert text in error.msg
    assert error.id == "rtq.E001"


def test_limits_of_a_queue_are_divided(servers, clients):
    limits = {"max_running": 5, "rate": "10/s", "max_waiting": 4, "client": {"max_running": 2}}
    with override_settings(RTQ={"REDIS": "redis://a", "SHARDS": 3, "QUEUES": {"mail": limits}}):
        shares = [config_of(shard_place(n)).queues["mail"] for n in range(3)]
    assert [share["max_running"] for share in shares] == [2, 2, 1]
    assert [share["max_waiting"] for share in shares] == [2, 1, 1]
    assert {share["rate"][1].total_seconds() for share in shares} == {3.0}
    assert {share["client"]["max_running"] for share in shares} == {2}
