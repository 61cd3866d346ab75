"""The examples of the page about monitoring run as tests of a project."""

import re

import pytest

from tests.markdown import blocks, read, section
from tests.support.projects import SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

PAGE = read("docs/monitoring.md")
LOGS_TEST = """
import json
import logging

from django_rtq.testing import eager
from shop.tasks import send_receipt


def test_the_lines_of_a_job_say_which_job_it_is(monkeypatch):
    lines = []
    (handler,) = [handler for handler in logging.getLogger().handlers if handler.filters]
    monkeypatch.setattr(handler, "emit", lambda record: lines.append(json.loads(handler.format(record))))
    with eager():
        job = send_receipt.delay(7)
    logging.getLogger("shop").info("no job runs")

    assert lines == [
        {
            "level": "INFO",
            "logger": "shop",
            "message": "sending the receipt of order 7",
            "job_id": job.id,
            "task": "shop.tasks.send_receipt",
            "queue": "mail",
            "client": "acme",
            "attempt": 1,
        },
        {"level": "INFO", "logger": "shop", "message": "no job runs"},
    ]
"""
STRUCTLOG_TEST = """
import json

import structlog

import shop.structured
from django_rtq import task
from django_rtq.testing import eager


@task
def export():
    structlog.get_logger().info("exported", client="mine")


def test_events_have_the_fields_of_the_job(capsys):
    with eager():
        job = export.delay()
    structlog.get_logger().info("outside")
    inside, outside = map(json.loads, capsys.readouterr().out.splitlines())
    assert (inside["job_id"], inside["task"], inside["attempt"]) == (job.id, export.name, 1)
    assert inside["client"] == "mine"
    assert set(outside) == {"event", "level", "timestamp"}
"""
METRICS_TEST = """
from django.test import Client
from django.urls import resolve

from shop import metrics, urls


def test_the_view_is_there(settings):
    settings.ROOT_URLCONF = "shop.urls"
    assert resolve("/metrics/rtq/").func is urls.metrics_view
    assert Client().get("/metrics/rtq/").status_code == 503  # no Redis


def test_registering_reads_nothing():
    assert metrics.registry is not None
"""
SENTRY_TEST = """
import sentry_sdk

from django_rtq.core.conf.config import get_config
from django_rtq.monitoring.sentry import RTQIntegration


def test_it_is_on():
    assert sentry_sdk.get_client().get_integration(RTQIntegration)
    assert get_config().middleware == ("django_rtq.monitoring.sentry.SentryMiddleware",)
"""
OPENTELEMETRY_TEST = """
from django_rtq import task
from django_rtq.core.conf.config import get_config
from django_rtq.testing import eager


@task
def export():
    return 5


def test_it_does_nothing_without_an_sdk():
    assert get_config().middleware == ("django_rtq.monitoring.opentelemetry.OpenTelemetryMiddleware",)
    with eager():
        assert export.delay().get() == 5
"""
INSTRUMENTED_TEST = """

def test_all_is_instrumented(settings):
    from django_rtq.core.broker.redis.commands import command_hooks

    assert [each for each in settings.MIDDLEWARE if "opentelemetry" in each]
    assert len(command_hooks) == 1
"""


UNREACHABLE = "redis://localhost:1/0"
WITH_TEST_REDIS = f'RTQ = {{"REDIS": "{UNREACHABLE}", "TEST_REDIS": "{UNREACHABLE}"}}\n'


@pytest.mark.parametrize(
    ("heading", "left_out", "packages", "settings", "test"),
    [
        ("Logs", "shop/structured.py", (), "", LOGS_TEST),
        ("Prometheus", "", ("prometheus_client",), WITH_TEST_REDIS, METRICS_TEST),
        ("Sentry", "", ("sentry_sdk",), "", SENTRY_TEST),
        ("OpenTelemetry", "shop/apps.py", ("opentelemetry",), "", OPENTELEMETRY_TEST),
        (
            "OpenTelemetry",
            "",
            ("opentelemetry.instrumentation.django", "opentelemetry.instrumentation.redis"),
            "",
            OPENTELEMETRY_TEST + INSTRUMENTED_TEST,
        ),
    ],
)
def test_the_examples_of_a_section_pass(tmp_path, heading, left_out, packages, settings, test):
    for package in packages:
        pytest.importorskip(package)
    files = {"settings.py": SETTINGS, "shop/test_page.py": test}
    for name, code in blocks(section(PAGE, f"## {heading}")):
        if name != left_out:
            files[name] = files.get(name, "") + code
    for address, own in (("redis://localhost:6379/0", UNREACHABLE), ("https://key@sentry.example.com/1", "")):
        files["settings.py"] = files["settings.py"].replace(address, own)
    files["settings.py"] += settings
    run_tests(tmp_path, files)


def test_the_example_of_structlog_passes(tmp_path):
    pytest.importorskip("structlog")
    shown = dict(blocks(section(PAGE, "## Logs")))["shop/structured.py"]
    files = {"settings.py": SETTINGS, "shop/structured.py": shown, "shop/test_structured.py": STRUCTLOG_TEST}
    run_tests(tmp_path, files)


def run_tests(folder, files):
    """All tests of a project pass."""
    write_project(folder, files, settings="settings")
    _, output = run_python(folder, *pytest_arguments())
    tests = sum(len(re.findall(r"def test_", code)) for code in files.values())
    assert f"{tests} passed" in output, output


LOGGED_RUN = """
import subprocess, sys

import django

django.setup()
from django.core.management import call_command

from shop.tasks import charge

job = charge.delay(42)
subprocess.run([sys.executable, "-m", "django", "rtq_worker", "--burst", "-v0"], check=True, capture_output=True)
call_command("rtq_jobs", "show", job.id)
"""


def test_what_a_job_logged_is_shown(redis, redis_server, tmp_path):
    (_, settings), (_, tasks) = blocks(section(PAGE, "## Log lines of a job"))
    settings = f"{SETTINGS}\n{settings.replace('redis://localhost:6379/0', redis_server.url)}"
    write_project(tmp_path, {"shop_settings.py": settings, "shop/tasks.py": tasks, "run.py": LOGGED_RUN})

    code, said = run_python(tmp_path, "run.py", DJANGO_SETTINGS_MODULE="shop_settings")

    assert code == 0, said
    assert re.search(r"\nLog:\n  \S+ \S+ INFO shop: charging order 42\n", said)
