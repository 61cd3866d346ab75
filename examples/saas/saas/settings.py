"""Settings. What differs between machines is in the environment: see deploy/saas.env.

Without any, it runs on this machine alone: SQLite, Redis on its usual port, e-mails on the console.
"""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


def env(name, default=""):
    return os.environ.get(f"SAAS_{name}", default)


DEBUG = env("DEBUG", "1") == "1"
SECRET_KEY = env("SECRET_KEY", "for development only" if DEBUG else "")
ALLOWED_HOSTS = env("HOSTS", "localhost,127.0.0.1").split(",")
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS]
DATA_DIR = Path(env("DATA_DIR", str(BASE_DIR / "data")))  # the web servers and all workers need the same one
USE_TZ = True
TIME_ZONE = "Europe/Berlin"

if env("POSTGRES_HOST"):
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": env("POSTGRES_HOST"),
            "NAME": env("POSTGRES_NAME", "saas"),
            "USER": env("POSTGRES_USER", "saas"),
            "PASSWORD": env("POSTGRES_PASSWORD"),
        }
    }
else:
    DATA_DIR.mkdir(exist_ok=True)
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": DATA_DIR / "db.sqlite3",
            # Writers wait for each other at the beginning of a transaction, instead of failing at its end.
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
        }
    }
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}  # jobs do not connect anew each time
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

RTQ = {
    "REDIS": env("REDIS_URL", "redis://localhost:6379/0"),
    # A job that is enqueued in a transaction is a row of it, until it is in Redis: both are there, or neither.
    "OUTBOX": True,
    "VERSION": env("VERSION"),
    "JOB_LOGS": "INFO",
    "QUEUES": {
        # Each tenant may run one job at once, or what its plan says: see stock/plans.py.
        "default": {"client": {"max_running": 1}},
        # What our suppliers allow us, over all machines.
        "bank": {"max_running": 5},
        "mail": {"rate": "10/s", "burst": 20},
    },
    "EMAIL": {
        "backend": f"django.core.mail.backends.{'smtp' if env('EMAIL_HOST') else 'console'}.EmailBackend",
        "queue_name": "mail",
        "max_attempts": 10,
    },
}
EMAIL_BACKEND = "django_rtq.mail.EmailBackend"
EMAIL_HOST = env("EMAIL_HOST", "localhost")
DEFAULT_FROM_EMAIL = "Stockroom <billing@example.com>"
BANK_URL = env("BANK_URL")  # "": no money is taken

MEDIA_ROOT = DATA_DIR / "files"
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
ROOT_URLCONF = "saas.urls"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "stock",
    "django_rtq",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
if not DEBUG:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^health/$"]  # a load balancer asks without HTTPS
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
