"""Prometheus itself reads the metrics, the alert rules and the dashboard. Needs its programs (Debian: prometheus)."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

from django_rtq.console.incidents.incident import DETECTORS, Severity
from django_rtq.monitoring.prometheus import metrics_server, metrics_text
from docs.site import reference
from testproject.redis_server import free_port
from tests.markdown import ROOT, blocks, read, rows, section
from tests.monitoring.prometheus.samples import Samples
from tests.support.jobs import QUEUE, claimed_job, dead_job, queued_job
from tests.support.waiting import PATIENCE, start_thread, wait_until

pytestmark = pytest.mark.long

RULES = ROOT / "docs/prometheus/alerts.yml"
DASHBOARD = ROOT / "docs/prometheus/dashboard.json"
needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")),
    reason="Prometheus is not installed: the metrics are NOT checked with it",
)


@pytest.fixture
def busy(redis, broker):
    """A queue with jobs, a worker on a host, and counters of a task: every metric has a sample."""
    broker.register_queues([QUEUE])
    metrics_text()
    dead_job(broker)
    claimed_job(broker, body='{"task":"shop.tasks.mail"}')
    queued_job(broker)
    broker.reclaim_child(QUEUE, "w1", ["x"])
    redis.hset(broker.keys.of(QUEUE).tasks + str(redis.time()[0] // 3600).encode(), "done shop.tasks.mail", 3)
    broker.sign_on([QUEUE], "w2")
    redis.hset("rtq:worker:w2", mapping={"queues": QUEUE, "host": "web1"})
    redis.zadd("rtq:workers", {"w2": 1})
    redis.hset(broker.keys.of(QUEUE).clock, "promoted", redis.time()[0] * 1000)


def promtool(*arguments, **options):
    """What it says, after it has found nothing wrong."""
    checked = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return checked.stdout + checked.stderr


def names_in(text):
    """The metrics that expressions name."""
    return set(re.findall(r"\brtq_[a-z_]+", text))


@needs_prometheus
def test_promtool_finds_nothing_wrong(busy):
    assert promtool("check", "metrics", input=metrics_text()[1].decode()) == ""


def expressions():
    found = re.findall(r"alert: (\w+)\n +expr: (.*(?:\n {10}.*)*)", RULES.read_text())
    return {name: " ".join(expression.replace(">-", "").split()) for name, expression in found}


def kinds_in(expression):
    """The kinds of incidents that an expression selects, or leaves out."""
    return set(re.findall(r"\w+", "|".join(re.findall(r'kind[!=~]+"([^"]*)"', expression))))


def test_each_kind_of_incident_has_one_rule_and_the_rules_have_no_thresholds_of_their_own():
    of_incidents = {name: text for name, text in expressions().items() if "rtq_incidents" in text}
    others = of_incidents.pop("RTQIncident")
    own = [kind for text in of_incidents.values() for kind in kinds_in(text)]

    assert len(own) == len(set(own))
    assert set(own) <= DETECTORS.keys()
    assert kinds_in(others) == {kind for kind in own if Severity.CRITICAL in DETECTORS[kind].severities}
    for text in (*of_incidents.values(), others):
        assert re.fullmatch(r"rtq_incidents\{[^}]*\} > 0", text), text
    assert expressions().keys() - of_incidents.keys() == {
        *("RTQIncident", "RTQMetricsMissing", "RTQTaskCrashes", "RTQWorkersBusy"),
    }


@needs_prometheus
def test_the_alert_rules_are_valid():
    promtool("check", "rules", str(RULES))


CRASHES = {
    "exp_labels": {"severity": "warning", "task": "shop.resize"},
    "exp_annotations": {"summary": "Task shop.resize: worker processes died three times in 15 minutes while it ran."},
}


@needs_prometheus
@pytest.mark.parametrize(
    ("values", "alerts"),
    [
        ("0x15 1x5", []),
        ("0x15 2x5", []),
        ("0x15 3x5", [CRASHES]),
        ("_x15 2x5", []),
        ("_x15 3x5", [CRASHES]),  # a new task: the counter begins with its crashes, so that it does not increase
        ("3x20", []),
        ("3x3 _x14 3x2", []),  # nobody scraped meanwhile
    ],
)
def test_a_task_that_crashes_again_and_again_is_an_alert(tmp_path, values, alerts):
    series = {"series": 'rtq_task_runs_crashed_total{task="shop.resize"}', "values": values}
    rule_test = {"eval_time": "20m", "alertname": "RTQTaskCrashes", "exp_alerts": alerts}
    shutil.copy(RULES, tmp_path / "alerts.yml")
    whole = {
        "rule_files": ["alerts.yml"],
        "tests": [{"interval": "1m", "input_series": [series], "alert_rule_test": [rule_test]}],
    }
    (tmp_path / "test.yml").write_text(json.dumps(whole))
    promtool("test", "rules", "test.yml", cwd=tmp_path)


def yaml_of_the_page(name):
    """A YAML file that the page shows."""
    found = [code for _, code in blocks(section(read("docs/monitoring.md"), "## Prometheus"), "yaml")]
    (code,) = [code for code in found if code.startswith(f"# {name}\n")]
    return code


@needs_prometheus
def test_the_query_of_the_scaler_gives_one_number(prometheus):
    (expression,) = re.findall(r"query: (.*)", yaml_of_the_page("scaler.yml"))
    wait_until(lambda: len(prometheus(expression)) == 1, seconds=60)


@needs_prometheus
def test_the_configuration_on_the_page_is_valid(tmp_path):
    (tmp_path / "prometheus.yml").write_text(yaml_of_the_page("prometheus.yml"))
    shutil.copy(RULES, tmp_path / "alerts.yml")
    promtool("check", "config", "prometheus.yml", cwd=tmp_path)


@pytest.mark.usefixtures("busy")
def test_rules_and_dashboard_name_metrics_that_exist():
    found = Samples(metrics_text()[1].decode()).names
    rules = names_in(" ".join(expressions().values()))
    panels = names_in(json.dumps([panel["targets"] for panel in json.loads(DASHBOARD.read_text())["panels"]]))

    assert len(rules) >= 4
    assert len(panels) >= 12
    assert (rules | panels) - found == set()


@pytest.mark.usefixtures("busy")
def test_the_page_lists_all_metrics():
    found = Samples(metrics_text()[1].decode()).names
    names = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in found}
    said = {name for row in rows(reference.metrics()) for name in names_in(row[0])}
    assert said == names


@pytest.fixture
def prometheus(tmp_path, busy):
    """A Prometheus that scrapes the metrics; gives back a function that runs a query."""
    server = metrics_server("127.0.0.1", 0)
    thread = start_thread(server.serve_forever)
    port = free_port()
    config = {
        "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "rtq", "static_configs": [{"targets": [f"127.0.0.1:{server.server_address[1]}"]}]}
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )

    def query(expression):
        address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as response:
                return [float(found["value"][1]) for found in json.load(response)["data"]["result"]]
        except OSError:
            return []

    yield query
    process.terminate()
    process.wait(PATIENCE)
    server.shutdown()
    server.server_close()
    thread.join()


@needs_prometheus
def test_prometheus_scrapes_them_and_an_alert_goes_off(redis, prometheus):
    wait_until(lambda: prometheus('up{job="rtq"}') == [1], seconds=60)
    wait_until(lambda: prometheus('rtq_jobs{state="queued"}') != [], seconds=60)
    for metric in ('rtq_jobs_enqueued_total{queue="default"}', 'rtq_task_runs_succeeded_total{task="shop.tasks.mail"}'):
        wait_until(lambda metric=metric: prometheus(metric) == [3], seconds=60)  # none while a scrape takes too long
    redis.hset("rtq:worker:w2", "queues", "other")
    wait_until(lambda: prometheus('ALERTS{alertname="RTQNobodyServesQueue", alertstate="pending"}') == [1], seconds=60)
