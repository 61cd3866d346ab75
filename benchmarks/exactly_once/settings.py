"""Settings of the workers: RTQ_BENCH_REDIS is the URL of Redis, RTQ_BENCH_DATABASE the database as JSON."""

from benchmarks.database_settings import *  # noqa: F403
from benchmarks.settings import RTQ as _RTQ

RTQ = {**_RTQ, "TASK_MODULES": ["tasks"], "LEASE_SECONDS": 1.0}
INSTALLED_APPS = ["django_rtq", "benchmarks.exactly_once"]
SILENCED_SYSTEM_CHECKS = ["rtq.W001"]  # a killed supervisor is noticed sooner
