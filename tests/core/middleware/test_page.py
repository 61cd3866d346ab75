"""The examples of the page about middleware run as tests of a project."""

import re

import pytest

from tests.markdown import blocks, read
from tests.support.projects import SETTINGS, pytest_arguments, run_python, write_project

pytestmark = pytest.mark.long

PAGE = blocks(read("docs/middleware.md"))
TESTS = {
    "shop/test_tenants.py": """
from django.utils import translation

from django_rtq.testing import eager
from shop.queue import current_tenant
from shop.tasks import export, ping


def test_a_job_runs_for_the_tenant_and_in_the_language_of_the_caller():
    current_tenant.set("acme")
    with eager(), translation.override("pt-br"):
        assert export.delay("orders").get() == "orders of acme in pt-br"
        assert ping.delay().get() == "acme"
        assert export.using(headers={"tenant": "bakery"}).delay("orders").get() == "orders of bakery in pt-br"
""",
    "shop/test_request_ids.py": """
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import path

from django_rtq.testing import captured
from shop.request_ids import request_id
from shop.tasks import export


def view(request):
    export.delay("orders")
    return HttpResponse(request_id.get())


urlpatterns = [path("", view)]


@override_settings(ROOT_URLCONF=__name__)
def test_a_job_has_the_id_of_its_request():
    with captured() as jobs:
        response = Client().get("/")
    assert len(response.text) == 32
    assert jobs[0].headers["request_id"] == response.text
""",
    "shop/test_callbacks.py": """
from django_rtq.testing import eager
from shop import callbacks, receivers
from shop.tasks import make_report


def test_callbacks():
    with eager(retries=True, propagate=False):
        make_report.delay(1)
        make_report.delay(13)
    assert callbacks.calls == [
        ("success", 1),
        ("failure", 1, "no such report"),
        ("failure", 2, "no such report"),
    ]
    assert receivers.done == [("ready", 1), ("failed", 13, "no such report")]
""",
}


def test_the_examples_pass(tmp_path):
    files = {"settings.py": SETTINGS + "MIDDLEWARE = []\n", "conftest.py": "import shop.receivers\n"}
    for name, code in [*PAGE, *TESTS.items()]:
        files[name] = files.get(name, "") + code
    files["settings.py"] = files["settings.py"].replace("redis://localhost:6379/0", "redis://localhost:1/0")
    write_project(tmp_path, files, settings="settings")
    _, output = run_python(tmp_path, *pytest_arguments())
    tests = sum(len(re.findall(r"def test_", code)) for code in TESTS.values())
    assert f"{tests} passed" in output, output
