"""Settings of the project. Both versions of the package have to know all that is used here."""

import os
from pathlib import Path

FOLDER = Path(os.environ["RTQ_FOLDER"])

SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["testserver"]
USE_TZ = True
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(FOLDER / "shop.sqlite3"),
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
    }
}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django_rtq",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}
SILENCED_SYSTEM_CHECKS = ["rtq.W001"]  # short leases are what makes the tests short

RTQ = {
    "REDIS": os.environ["RTQ_REDIS_URL"],
    "LEASE_SECONDS": 2.0,
    "OUTBOX": True,
    "KEEP_ARGS": True,
    "JOB_LOGS": "INFO",
    "QUEUES": {
        "paused": {},
        "crash": {},
        "limited": {"max_running": 2, "client": {"max_running": 1}},
        "rated": {"rate": "200/s"},
        "weighted": {"clients": {"north": {"weight": 3}}},
        "seconds": {"fair_by": "seconds"},
    },
    "SCHEDULES": {"nightly": {"task": "shop.tasks.count", "cron": "0 3 * * *", "args": ["nightly"]}},
}
TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend", "QUEUES": []}}
