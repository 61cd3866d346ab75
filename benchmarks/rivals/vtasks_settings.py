"""Settings for django-vtasks."""

import json
import os

SECRET_KEY = "not a secret: nothing here answers requests"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
if "RTQ_BENCH_DATABASE" in os.environ:
    DATABASES = {"default": json.loads(os.environ["RTQ_BENCH_DATABASE"])}
INSTALLED_APPS = ["django_vtasks", "benchmarks"]
TASKS = {
    "default": {
        "BACKEND": "django_vtasks.backends.valkey.ValkeyTaskBackend",
        "OPTIONS": {"BROKER_URL": os.environ.get("RTQ_BENCH_REDIS", "")},
    }
}
VTASKS_QUEUES = ["default"]
VTASKS_RUN_SCHEDULER = False
VTASKS_MAX_RESCUES = 3
