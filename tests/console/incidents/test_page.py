"""The examples of the page about incidents run as tests of a project."""

import pytest

from tests.markdown import blocks, read
from tests.monitoring.test_page import UNREACHABLE, run_tests
from tests.support.projects import SETTINGS

pytestmark = pytest.mark.long

PAGE = read("docs/incidents.md")
TEST = """
from django.test import Client
from django.urls import resolve

import json

import pytest

from django_rtq.core.conf.config import get_config
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents import Incident, Severity
from django_rtq.signals import incident_closed, incident_opened
from shop import alarms, chat, urls

NO_WORKER = Incident(kind="no_worker", severity=Severity.CRITICAL, command="python manage.py rtq_worker")
PAUSED = Incident(kind="queue_paused", severity=Severity.WARNING, queue="mail", values={"name": "mail"})


@pytest.fixture
def posted(monkeypatch):
    found = []  # texts

    def urlopen(request, timeout):
        assert request.full_url == "https://hooks.slack.com/x"
        found.append(json.loads(request.data)["text"])

    monkeypatch.setattr(chat, "urlopen", urlopen)
    return found


def test_the_view_is_there(settings):
    settings.ROOT_URLCONF = "shop.urls"
    assert resolve("/health/rtq/").func is urls.health_view
    assert Client().get("/health/rtq/").status_code == 503  # no Redis


def test_admins_get_a_mail_about_what_is_critical(monkeypatch, posted):
    mails = []
    monkeypatch.setattr(alarms, "mail_admins", lambda subject, text: mails.append((subject, text)))
    for signal in (incident_opened, incident_closed):
        signal.send(None, incident=NO_WORKER)
        signal.send(None, incident=PAUSED)
    assert [subject for subject, _ in mails] == ["Shop: no_worker", "Shop: no_worker is over"]
    assert mails[0][1].endswith("Start one: python manage.py rtq_worker")


def test_the_chat_gets_all(posted):
    for signal in (incident_opened, incident_closed):
        assert signal.send_robust(None, incident=PAUSED)[-1][1] is None
    assert posted == [":red_circle: Queue mail is paused.", ":white_check_mark: Queue mail is paused."]


def test_the_thresholds_are_read():
    assert incident_options().oldest_seconds == 600
"""


def test_the_examples_pass(tmp_path):
    files = {"settings.py": SETTINGS, "shop/test_incidents.py": TEST}
    for name, code in blocks(PAGE):
        files[name] = files.get(name, "") + code
    settings = files["settings.py"].replace("redis://localhost:6379/0", UNREACHABLE)
    files["settings.py"] = settings.replace('"INCIDENTS"', f'"TEST_REDIS": "{UNREACHABLE}", "INCIDENTS"')
    files["settings.py"] += (
        'INSTALLED_APPS[-2] = "shop.apps.ShopConfig"\nSITE_NAME = "Shop"\nSLACK_WEBHOOK = "https://hooks.slack.com/x"\n'
    )
    run_tests(tmp_path, files)
