"""What happens to a project is said alike by the overview, rtq --check, the health view and the alert rules.

Each state is made in Redis, and all four are asked. A new detector gets a state here.
"""

import json
import re
from html import unescape
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client, override_settings

from django_rtq import rtq
from django_rtq.core.broker.settlement import Settlement
from django_rtq.monitoring import health
from tests.console.admin.conftest import operator, person, text  # noqa: F401
from tests.support.jobs import QUEUE, claim, claimed_job, dead_job, let_lapse, queued_job, retrying_job, scheduled_job
from tests.support.workflows import seed_blocked

pytest.importorskip("prometheus_client")

from django_rtq.monitoring.prometheus import metrics_text
from tests.monitoring.prometheus.samples import Samples
from tests.monitoring.prometheus.test_real_prometheus import expressions

WORKER = "web1:4711:0a1b2c3d"
RTQ_OPTIONS = {"INCIDENTS": {"ignore": ["redis_volatile"]}}
TASK = "shop.tasks.send_reminder"
BODY = f'{{"task":"{TASK}"}}'


class Project:
    """A healthy project: one worker serves the only queue, and a scheduler looks for due jobs."""

    def __init__(self, redis, broker, readers):
        self.redis, self.broker, self.readers, self.keys = redis, broker, readers, broker.keys.of(QUEUE)
        broker.register_queues([QUEUE])
        self.start(WORKER)
        redis.hset(self.keys.clock, "promoted", self.now_ms())

    def now_ms(self):
        seconds, micros = self.redis.time()
        return seconds * 1000 + micros // 1000

    def start(self, worker, queues=(QUEUE,), **info):
        self.broker.sign_on(queues, worker)
        host, pid, _ = worker.split(":")
        info = {"host": host, "pid": pid, "queues": ",".join(queues), "supervisor_name": f"{worker}-s", **info}
        self.broker.heartbeat(queues, {worker: info}, promote=False)

    def report(self, done=0, failed=0):
        """Runs of the task."""
        numbers = [each for kind, n in (("done", done), ("failed", failed)) if n for each in (f"{kind} {TASK}", n)]
        self.broker.settle(WORKER, QUEUE, Settlement(metrics=[(0, 0, len(numbers) // 2, *numbers)]))

    def wait(self, client, seconds):
        """A client whose first job has been waiting for so long."""
        queued_job(self.broker, client=client, body=BODY)
        self.redis.zadd(self.keys.lanes, {f"0:{client}": self.now_ms() - seconds * 1000})


def a_job_hangs(project):
    project.report(done=100)
    job = claimed_job(project.broker, worker=WORKER, body=f'{{"task":"{TASK}","time_limit":5}}')
    project.redis.hset(project.keys.running(WORKER), job.id, f"1 {project.now_ms() - 60_000}")


def a_client_is_at_its_limit(project):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    for _ in range(3):
        queued_job(project.broker, client="north")
    claim(project.broker, 5, worker=WORKER)
    project.wait("north", 900)


def no_client_may_run_a_job(project):
    for client in ("north", "south"):
        project.wait(client, 10)
    rtq.queues[QUEUE].limit_clients(max_running=0)


def one_client_may_run_no_job(project):
    for client in ("north", "south"):
        project.wait(client, 10)
    rtq.clients["north"].limit(QUEUE, max_running=0)


def a_host_died_and_others_live(project):
    project.start("web2:1:0a1b2c3d")
    claimed_job(project.broker, worker="web2:1:0a1b2c3d")
    let_lapse(project.broker, "web2:1:0a1b2c3d")


# How the state comes about; kind -> severity of what has to be said, and words of it
STATES = {
    "all is well": (lambda it: (it.report(done=500), queued_job(it.broker), scheduled_job(it.broker)), {}, ()),
    "everything fails": (
        lambda it: (it.report(done=38_000), it.report(failed=50)),
        {"task_failing": "critical"},
        ["send_reminder in queue default is failing: 50 of its last 50"],
    ),
    "a job hangs": (a_job_hangs, {"job_hung": "warning"}, ["1 job seems to hang: send_reminder"]),
    "all workers are quiet": (
        lambda it: (it.start(WORKER, quiet=1, quiet_seconds=90, quiet_by="ada"), queued_job(it.broker)),
        {"workers_quiet": "critical"},
        ["All workers of default are quiet", "1 job waits. Asked by ada."],
    ),
    "a client is paused": (
        lambda it: (it.wait("north", 900), rtq.clients["north"].pause(QUEUE, by="ada")),
        {"client_paused": "info"},
        ["north is paused in default, and holds 1 job. Paused by ada."],
    ),
    "a client is at its limit": (a_client_is_at_its_limit, {}, ()),
    "no client may run a job": (
        no_client_may_run_a_job,
        {"limit_zero": "critical"},
        ["max_running of each client is 0: 2 wait for it. It was set at run time."],
    ),
    "one client may run no job": (
        one_client_may_run_no_job,
        {"limit_zero": "warning"},
        ["The limit max_running of client north is 0."],
    ),
    "the queue may run no job": (
        lambda it: (it.wait("north", 900), rtq.queues[QUEUE].limit(max_running=0)),
        {"limit_zero": "critical", "long_wait": "warning"},
        ["max_running of the queue is 0.", "15 min. The queue runs as many jobs as its limit max_running allows."],
    ),
    "a limit of 0 stops nobody": (
        lambda it: (rtq.clients["north"].limit(QUEUE, max_running=0), it.wait("south", 10)),
        {},
        (),
    ),
    "jobs wait long": (
        lambda it: it.wait("south", 900),
        {"long_wait": "warning"},
        ["Queue default: the oldest job has been waiting for 15 min."],
    ),
    "a queue is paused": (
        lambda it: (it.wait("south", 900), rtq.queues[QUEUE].pause()),
        {"queue_paused": "warning"},
        ["Queue default is paused."],
    ),
    "a task is paused": (
        lambda it: rtq.tasks[TASK].pause(by="ada"),
        {"task_paused": "warning"},
        ["Task send_reminder is paused in default"],
    ),
    "a queue is not served": (
        lambda it: queued_job(it.broker, queue="night"),
        {"queue_unserved": "critical"},
        ["Queue night: 1 job waits, and no worker serves the queue"],
    ),
    "a host died and others live": (
        a_host_died_and_others_live,
        {"worker_lost": "critical"},
        ["Host web2: 1 worker has stopped responding (web2:1). Running jobs that will be reclaimed shortly: 1."],
    ),
    "nobody schedules": (
        lambda it: (retrying_job(it.broker), it.redis.hset(it.keys.clock, "promoted", it.now_ms() - 600_000)),
        {"no_scheduler": "critical"},
        ["Queue default: no scheduler is running"],
    ),
    "a workflow is blocked": (
        lambda it: seed_blocked(it.redis, it.broker, seconds=7200),
        {"workflow_blocked": "warning"},
        ["Workflow flow has been blocked by dead jobs for 2 h"],
    ),
    "a workflow is stuck": (
        lambda it: it.redis.zadd(it.keys.stuck_workflows, {"0123456789ab flow": it.now_ms() - 120_000}),
        {"workflow_stuck": "warning"},
        ["Workflow flow can never go on: nobody knows how some of its jobs have ended"],
    ),
    "a process crashed": (
        lambda it: dead_job(it.broker),
        {"dead_letters": "warning"},
        ["Queue default: 1 job died in the last hour."],
    ),
}


@pytest.fixture
def project(redis, broker, readers, monkeypatch):
    monkeypatch.setattr("django_rtq.console.incidents.workers.declared_queues", lambda place: [QUEUE])
    monkeypatch.setitem(health._kept, "until", 0.0)
    return Project(redis, broker, readers)


def checked():
    """What rtq --check says, and its exit code."""
    out = StringIO()
    try:
        call_command("rtq", "--check", "--json", stdout=out)
    except SystemExit as stop:
        return json.loads(out.getvalue()), stop.code
    return json.loads(out.getvalue()), 0


def firing():
    """The alert rules that fire: those that select incidents which the metrics have, with their severities."""
    found = Samples(metrics_text()[1].decode()).of("rtq_incidents")
    alerts = []
    for labels in map(dict, found):
        for name, rule in expressions().items():
            terms = re.findall(r'(kind|severity)(=~|!~|!=|=)"([^"]*)"', rule) if "rtq_incidents" in rule else []
            if terms and all(
                bool(re.fullmatch(pattern, labels[label])) is not how.startswith("!") for label, how, pattern in terms
            ):
                alerts.append((name, labels["kind"], labels["severity"]))
    return alerts


def _subject_of(incident):
    """What the card has as its heading."""
    named = ((kind, incident.get(kind)) for kind in ("queue", "host", "shard"))
    return next((f"{kind} {name}".lower() for kind, name in named if name), "")


@pytest.mark.parametrize(("state", "expected", "words"), STATES.values(), ids=STATES)
def test_all_say_the_same(project, operator, state, expected, words):  # noqa: F811
    state(project)

    said, code = checked()
    with override_settings(ROOT_URLCONF="tests.monitoring.test_health"):
        answer = Client().get("/health/rtq/")
    page = unescape(text(operator.get("/admin/django_rtq/queue/")))
    kinds = {each["kind"]: each["severity"] for each in said["incidents"]}
    worst = "critical" if "critical" in expected.values() else "warning" if "warning" in expected.values() else "ok"
    (level,) = re.findall(r'class="rtq-health rtq-(\w+)"', page)

    assert kinds == expected
    assert (said["status"], code) == (worst, {"ok": 0, "warning": 1, "critical": 2}[worst])
    assert (answer.json()["status"], answer.status_code) == (worst, 503 if worst == "critical" else 200)
    assert {each["kind"]: each["severity"] for each in answer.json()["incidents"]} == expected
    assert level in {"ok": ("good", "plain"), "warning": ("warn",), "critical": ("bad",)}[worst]
    for each in said["incidents"]:
        assert each["text"].lower().removeprefix(f"{_subject_of(each)}: ") in page.lower()
    for each in words:
        assert each in " ".join(incident["text"] for incident in said["incidents"])
    # One alert for each critical incident; none of another severity than it.
    fires = firing()
    for kind, severity in expected.items():
        names = [name for name, *rest in fires if rest == [kind, severity]]
        assert len(names) == 1 if severity == "critical" else len(names) <= 1, kind
    assert {(kind, severity) for _, kind, severity in fires} <= set(expected.items())
