"""Packages of the extras are optional."""

import pytest

from tests.support.projects import run_python

pytestmark = pytest.mark.long

EXTRAS = ["prometheus_client", "sentry_sdk", "opentelemetry", "structlog"]
PACKAGES = {"opentelemetry": "otel", "prometheus": "prometheus", "sentry": "sentry"}  # module -> extra
IMPORT_ALL = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({EXTRAS}))  # importing them fails
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_rtq"])
django.setup()
import django_rtq.monitoring as package
for module in pkgutil.iter_modules(package.__path__):
    name = package.__name__ + "." + module.name
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(module.name, error)
import django_rtq.monitoring.rtq_metrics
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What an import said, by module."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "program.py").write_text(IMPORT_ALL)
    code, output = run_python(folder, "program.py")
    assert code == 0, output
    return dict(line.split(" ", 1) for line in output.splitlines())


def test_only_what_needs_an_extra_cannot_be_imported_without_it(refused):
    assert sorted(refused) == sorted(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_error_names_the_extra(refused, name):
    assert f'pip install "django-rtq[{PACKAGES[name]}]"' in refused[name]
