"""The app in a separate project: it finds tasks, and does not connect to Redis before it has to."""

import json
import socket

import pytest

from tests.support.projects import run_python, write_project

pytestmark = pytest.mark.long

MODELS = "from django.db import models\nclass {0}(models.Model): ...\nclass Schedule(models.Model): ...\n"
TASKS = "from django_rtq import task\n@task\ndef {0}(): ...\n"
SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "shop", "empty", "django_rtq"]
"""
FILES = {
    "project_settings.py": SETTINGS,
    "shop/tasks.py": TASKS.format("send"),
    "shop/jobs.py": TASKS.format("report"),
    "shop/more/__init__.py": "",
    "shop/more/tasks.py": TASKS.format("deep"),
    "empty/__init__.py": "",
}
LIST = """
import django, json
django.setup()
from django_rtq.core.tasks import registry
print(json.dumps([name for name in registry.all_tasks() if not name.startswith("django_rtq.")]))
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a Django project. Call it with settings and a program, or with arguments of Python. Returns the
    exit code and what it printed."""
    write_project(tmp_path, FILES)

    def run(settings, *arguments):
        (tmp_path / "project_settings.py").write_text(f"{SETTINGS}\n{settings}\n")
        if len(arguments) == 1:
            (tmp_path / "program.py").write_text(*arguments)
            arguments = ["program.py"]
        return run_python(tmp_path, *arguments, DJANGO_SETTINGS_MODULE="project_settings")

    run.path = tmp_path
    return run


@pytest.fixture
def nobody_home():
    """The URL of a port where nobody answers; asserts that nobody knocked."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.setblocking(False)
        yield f"redis://127.0.0.1:{door.getsockname()[1]}/0"
        with pytest.raises(BlockingIOError):
            door.accept()


def test_the_tasks_of_every_app_are_known_after_setup(project, nobody_home):
    assert project(f'RTQ = {{"REDIS": "{nobody_home}"}}', LIST) == (0, '["shop.tasks.send"]\n')


def test_tasks_are_looked_for_where_the_settings_say(project):
    code, said = project('RTQ = {"TASK_MODULES": ["jobs", "more.tasks", "tasks"]}', LIST)

    assert (code, json.loads(said)) == (0, ["shop.jobs.report", "shop.more.tasks.deep", "shop.tasks.send"])


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
        (
            TASKS.format("send").replace("@task", "@task(priority=1000)"),
            "InvalidTask: shop.tasks.send: priority is 1000, but has to be",
        ),
    ],
)
def test_a_bad_module_or_task_stops_the_start_and_says_which(project, tasks, problem):
    (project.path / "shop/tasks.py").write_text(tasks)

    code, said = project("", LIST)

    assert (code, problem in said) == (1, True), said


def test_check_and_migrate_work_without_redis(project, nobody_home):
    program = "from django.core.management import call_command as c; import django; django.setup(); c('check'); "

    said = project(f'RTQ = {{"REDIS": "{nobody_home}"}}', program + "c('migrate', verbosity=0)")

    assert said == (0, "System check identified no issues (0 silenced).\n")


def test_check_without_settings_reports_what_is_missing(project):
    code, said = project("", "-m", "django", "check")

    assert code == 1
    assert '?: (rtq.E001) RTQ["REDIS"] is not set. Write for example RTQ = {"REDIS":' in said
    assert "Traceback" not in said


@pytest.mark.parametrize("place", [0, 4])
def test_the_shell_hides_no_model_of_the_project(project, place):
    (project.path / "shop/models.py").write_text(MODELS.format("Client"))
    order = f'INSTALLED_APPS.remove("django_rtq")\nINSTALLED_APPS.insert({place}, "django_rtq")\nUSE_TZ = True\n'
    auto = "DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'"
    command = "print(Client.__module__, Schedule.__module__)"

    settings = f'RTQ = {{"REDIS": "redis://localhost:1/0"}}\n{order}{auto}'
    code, said = project(settings, "-m", "django", "shell", "-c", command)

    assert (code, said.splitlines()[-1]) == (0, f"shop.models {'shop' if place else 'django_rtq'}.models")


WITHOUT_DJANGO_REDIS = """
import sys
sys.modules["django_redis"] = None  # it cannot be imported
import django
django.setup()
import importlib, pkgutil
from django.core.management import call_command
import django_rtq
from shop.tasks import send
job = send.delay()
call_command("check", deploy=True, fail_level="CRITICAL")
call_command("rtq_worker", "--burst")
for module in pkgutil.walk_packages(django_rtq.__path__, "django_rtq."):
    if not module.name.startswith(("django_rtq.migrations", "django_rtq.pytest_plugin", "django_rtq.monitoring.")):
        importlib.import_module(module.name)
print(job.state, [name for name in sys.modules if name.startswith("django_redis.")])
"""


@pytest.mark.parametrize("cache", ["locmem.LocMemCache", "redis.RedisCache"])
def test_without_a_cache_of_django_redis_it_is_not_imported(project, redis, proxy, cache):
    caches = {"default": {"BACKEND": f"django.core.cache.backends.{cache}", "LOCATION": proxy.url + "1"}}

    apps = 'INSTALLED_APPS += ["django.contrib.admin"]'
    settings = f'DEBUG = True\nCACHES = {caches}\nRTQ = {{"REDIS": "{proxy.url}"}}\n{apps}'
    code, said = project(settings, WITHOUT_DJANGO_REDIS)

    assert (code, said.splitlines()[-1]) == (0, "succeeded []"), said
