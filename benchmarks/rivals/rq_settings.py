"""Settings for the workers of RQ."""

import os

REDIS_URL = os.environ["RTQ_BENCH_REDIS"]
