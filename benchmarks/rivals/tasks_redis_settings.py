"""Settings for django-tasks-redis."""

from benchmarks.rivals.django_settings import DATABASES, REDIS_URL, SECRET_KEY, USE_TZ  # noqa: F401

INSTALLED_APPS = ["django_tasks_redis", "benchmarks"]
TASKS = {
    "default": {
        "BACKEND": "django_tasks_redis.RedisTaskBackend",
        "OPTIONS": {"REDIS_URL": REDIS_URL},
    }
}
