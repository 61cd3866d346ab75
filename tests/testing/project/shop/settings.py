"""Settings of a project whose tests run in a test of ours. RTQ["REDIS"] is a server that has to stay empty."""

import os

SECRET_KEY = "not a secret: for a test"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "shop", "django_rtq"]
RTQ = {"REDIS": os.environ["PROJECT_REDIS_URL"]}
if "PROJECT_TEST" in os.environ:
    RTQ["TEST"] = os.environ["PROJECT_TEST"]
if "PROJECT_TEST_REDIS_URL" in os.environ:
    RTQ["TEST_REDIS"] = os.environ["PROJECT_TEST_REDIS_URL"]
