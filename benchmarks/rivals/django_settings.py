"""What the settings of other queues for Django have in common."""

import json
import os

SECRET_KEY = "not a secret: nothing here answers requests"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
if "RTQ_BENCH_DATABASE" in os.environ:
    DATABASES = {"default": json.loads(os.environ["RTQ_BENCH_DATABASE"])}
REDIS_URL = os.environ.get("RTQ_BENCH_REDIS", "")
