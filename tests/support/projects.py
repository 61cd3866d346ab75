"""Small projects of users: written to a folder, and run by another Python."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

from tests.markdown import ROOT

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
    (folder / "shop").mkdir()
    ini = f"[pytest]\nDJANGO_SETTINGS_MODULE = {settings}\nfilterwarnings = error\n"
    for name, code in {"shop/__init__.py": "", "pytest.ini": ini, **files}.items():
        (folder / name).write_text(code)


def run_python(folder, *arguments, **variables):
    """Run Python in the folder of a project. Returns its exit code and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), **variables}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def pytest_arguments():
    """As in a project where the package is installed, also if this checkout is not."""
    installed = [entry.value for entry in entry_points(group="pytest11")]
    return ["-m", "pytest", "-q", "-p", "no:cacheprovider", *([] if PLUGIN in installed else ["-p", PLUGIN])]
