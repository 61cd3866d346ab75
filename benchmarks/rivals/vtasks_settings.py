"""Settings for django-vtasks."""

from benchmarks.rivals.django_settings import DATABASES, REDIS_URL, SECRET_KEY, USE_TZ  # noqa: F401

INSTALLED_APPS = ["django_vtasks", "benchmarks"]
TASKS = {
    "default": {
        "BACKEND": "django_vtasks.backends.valkey.ValkeyTaskBackend",
        "OPTIONS": {"BROKER_URL": REDIS_URL},
    }
}
VTASKS_QUEUES = ["default"]
VTASKS_RUN_SCHEDULER = False
VTASKS_MAX_RESCUES = 3
