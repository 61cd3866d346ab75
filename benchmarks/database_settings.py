"""Settings of a project whose jobs use a database: the one in RTQ_BENCH_DATABASE, as JSON."""

import json
import os

from benchmarks.settings import *  # noqa: F403

DATABASES = {"default": json.loads(os.environ["RTQ_BENCH_DATABASE"])}
