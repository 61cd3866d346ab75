"""Small projects of users: written to a folder, and run by another Python."""

import os
import tempfile
from pathlib import Path

from tests.markdown import ROOT
from tests.support.forked_commands import ForkedPython

SETTINGS = """
SECRET_KEY = "for a test"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "shop", "django_rtq"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""
MODELS = """
from django.db import models


class Order(models.Model):
    is_charged = models.BooleanField(default=False)
    is_reminded = models.BooleanField(default=False)
"""
PLUGIN = "django_rtq.pytest_plugin"


def write_project(folder, files, *, settings="shop_settings"):
    """Write these files, of an app `shop`, for tests by pytest in which warnings are errors."""
    ini = f"[pytest]\nDJANGO_SETTINGS_MODULE = {settings}\nfilterwarnings = error\n"
    for name, code in {"shop/__init__.py": "", "pytest.ini": ini, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)


def run_python(folder, *arguments, **variables):
    """Run Python in the folder of a project. Returns its exit code and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with tempfile.TemporaryDirectory() as other_folder:
        log = Path(other_folder) / "log"
        code = ForkedPython(arguments, environment | variables, log, folder).wait(300)
        return code, log.read_text()


def pytest_arguments(*plugins):
    """Pytest with the plugins that a project needs, and without others that are installed here: most of its start."""
    return [
        "-m",
        "pytest",
        "-q",
        *(f"-p{name}" for name in ("no:cacheprovider", "pytest_django.plugin", PLUGIN, *plugins)),
    ]
