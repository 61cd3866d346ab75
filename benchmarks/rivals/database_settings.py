"""Settings of Django for the jobs with a database, of contenders that know nothing of Django. Connections are kept."""

import json
import os

SECRET_KEY = "not a secret: nothing here answers requests"
USE_TZ = True
DATABASES = {"default": json.loads(os.environ["RTQ_BENCH_DATABASE"])} if "RTQ_BENCH_DATABASE" in os.environ else {}
INSTALLED_APPS = ["benchmarks"]
