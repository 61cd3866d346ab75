"""The examples of the page about incidents run as tests of a project."""

from tests.markdown import read
from tests.monitoring.test_page import files_in, passed

PAGE = read("docs/incidents.md")
TEST = """
from django.test import Client
from django.urls import resolve

from django_rtq.conf import get_config
from shop import urls


def test_the_view_is_there(settings):
    settings.ROOT_URLCONF = "shop.urls"
    assert resolve("/health/rtq/").func is urls.health_view
    assert Client().get("/health/rtq/").status_code == 503  # no Redis


def test_the_thresholds_are_read():
    assert get_config().incident_options.oldest_seconds == 600
"""


def test_the_examples_pass(tmp_path):
    files = files_in(PAGE)
    files["settings.py"] = files["settings.py"].replace(
        '"INCIDENTS"', '"TEST_REDIS": "redis://localhost:1/0", "INCIDENTS"'
    )
    assert passed(tmp_path, {**files, "shop/test_incidents.py": TEST})
