"""Settings of the measured project. RTQ_BENCH_REDIS is the URL of its Redis."""

import os

SECRET_KEY = "not a secret: nothing here answers requests"
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"

RTQ = {
    "REDIS": os.environ.get("RTQ_BENCH_REDIS", "redis://127.0.0.1:6379/0"),
    "TASK_MODULES": ["jobs"],
}

# Most projects have a database. No job here opens it.
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_rtq",
    "benchmarks",
]
