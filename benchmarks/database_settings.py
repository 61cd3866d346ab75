"""Settings of a project whose jobs use a database: the one in RTQ_BENCH_DATABASE, as JSON."""

import json
import os

from benchmarks.settings import *  # noqa: F403
from benchmarks.settings import RTQ
from testproject.mariadb_server import install_driver

if os.environ.get("RTQ_BENCH_OUTBOX"):
    RTQ = {**RTQ, "OUTBOX": True}
DATABASES = {"default": json.loads(os.environ["RTQ_BENCH_DATABASE"])}
if DATABASES["default"]["ENGINE"].endswith("mysql"):
    install_driver()
