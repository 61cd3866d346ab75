"""The package in projects of other shapes than that of our own tests: without an admin, a database, time zones, …"""

import json

import pytest

from tests.markdown import ROOT
from tests.support.projects import run_python, write_project

pytestmark = pytest.mark.long

SETTINGS = """
SECRET_KEY = "for a test, and longer than fifty characters 0123456789"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
TIME_ZONE = "Asia/Shanghai"
ROOT_URLCONF = "shop_urls"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "django.contrib.staticfiles", "shop", "django_rtq",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {
    "context_processors": [
        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ],
}}]
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3", "OPTIONS": {"timeout": 20}}}
TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend", "QUEUES": []}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USES_ASGI = False
"""
NO_USERS = 'INSTALLED_APPS = ["shop", "django_rtq"]; MIDDLEWARE = []; ROOT_URLCONF = "views_urls"'
SHAPES = {
    "no admin": 'INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "shop", "django_rtq"];'
    'MIDDLEWARE = []; ROOT_URLCONF = "views_urls"',
    "nothing but us": f"{NO_USERS}; TEMPLATES = []",
    "no ROOT_URLCONF and no database": f"{NO_USERS}; del ROOT_URLCONF; DATABASES = {{}}",
    "empty default database": 'DATABASES = {"default": {}, "main": DATABASES["default"]};'
    'DATABASE_ROUTERS = ["shop.router.Router"]',
    "USE_TZ off, login required": "USE_TZ = False;"
    'MIDDLEWARE += ["django.contrib.auth.middleware.LoginRequiredMiddleware"]',
    "USE_I18N off, ASGI, a user model of its own": "USE_I18N = False; USES_ASGI = True;"
    'INSTALLED_APPS += ["people"]; AUTH_USER_MODEL = "people.Person"',
}
ON_POSTGRES = {
    "PostgreSQL with a pool": 'DATABASES = POSTGRES; POSTGRES["default"].update('
    'OPTIONS={"pool": {"max_size": 5}}, CONN_HEALTH_CHECKS=True)',
    "PostgreSQL with connections that are kept": 'DATABASES = POSTGRES; POSTGRES["default"].update(CONN_MAX_AGE=60)',
}
VIEWS = """
from django.urls import path
from django_rtq.monitoring.health import health_view
from django_rtq.monitoring.prometheus import metrics_view
urlpatterns = [path("health/", health_view), path("metrics/", metrics_view)]
"""
FILES = {
    "views_urls.py": VIEWS,
    "shop_urls.py": f'{VIEWS}\nfrom django.contrib import admin\nurlpatterns.append(path("admin/", admin.site.urls))\n',
    "shop/tasks.py": """
import asyncio, time
from pathlib import Path
from django.db import connection
from django_rtq import every, task

@task(schedule=every(hours=1, args=[1]))
def double(number): return 2 * number

@task
async def adouble(number):
    await asyncio.sleep(0)
    return 2 * number

@task
def ask_database():
    from django_rtq.models import Schedule
    return len(Schedule.objects.all()[:0]) + 2 if "dummy" not in connection.settings_dict["ENGINE"] else 2

@task(max_attempts=1)
def fail(password): raise ValueError(password)

@task
def hang():
    while not Path("over").exists():
        time.sleep(0.05)
""",
    "shop/router.py": """
class Router:
    def db_for_read(self, model, **hints): return "main"
    def db_for_write(self, model, **hints): return "main"
    def allow_relation(self, first, second, **hints): return True
""",
    "shop/tests.py": """
from django.test import SimpleTestCase
from django_rtq.testing import captured
from shop.tasks import double

class TaskTests(SimpleTestCase):
    def test_a_job_is_captured(self):
        with captured() as jobs:
            double.delay(2)
        self.assertEqual(len(jobs), 1)
""",
    "people/__init__.py": "",
    "people/migrations/__init__.py": "",
    "people/models.py": """
import uuid
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models

class People(BaseUserManager):
    def create_superuser(self, email, password):
        person = self.model(email=email, is_staff=True, is_superuser=True)
        person.save(using=self._db)
        return person

class Person(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    USERNAME_FIELD = "email"
    objects = People()
""",
}


@pytest.mark.parametrize("shape", [*SHAPES, *(pytest.param(name, marks=pytest.mark.databases) for name in ON_POSTGRES)])
def test_a_project_can_use_all_of_the_package(request, tmp_path, redis, redis_server, shape):
    lines = {**SHAPES, **ON_POSTGRES}[shape].split(";")
    if shape in ON_POSTGRES:
        pytest.importorskip("psycopg_pool")
        lines.insert(
            0, f'POSTGRES = {{"default": {request.getfixturevalue("postgres").create_database(tmp_path.name)!r}}}'
        )
    rtq = f'RTQ = {{"REDIS": "{redis_server.url}", "LEASE_SECONDS": 5}}'
    write_project(tmp_path, {**FILES, "shop_settings.py": "\n".join([SETTINGS, rtq, *map(str.strip, lines)])})

    code, said = run_python(
        tmp_path, str(ROOT / "tests/support/project_walk.py"), DJANGO_SETTINGS_MODULE="shop_settings"
    )

    assert code == 0, said
    assert json.loads(said.splitlines()[-1]) == [], said
