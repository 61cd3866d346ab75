"""The settings of the worker processes that tests start. The environment says what is different for a test."""

import json
import os

from testproject.mariadb_server import install_driver
from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, RTQ, TASKS

if os.environ.get("RTQ_TEST_CLOCK") == "jumping":
    from tests.app import jumping_clock  # noqa: F401 - it takes the place of the true one

INSTALLED_APPS = ["tests.app", "django_rtq"]  # no admin: they start a third faster
INSTALLED_APPS += os.environ.get("RTQ_TEST_APPS", "").split()
RTQ = {
    **RTQ,
    "LEASE_SECONDS": 2.0,
    "TASK_MODULES": ["tasks", "unique_tasks", "torture_tasks"],
    **json.loads(os.environ.get("RTQ_TEST_OPTIONS", "{}")),
}
if urls := RTQ.pop("SHARD_SERVERS", []):
    from tests.support.shard_servers import put_on

    put_on(urls)
    RTQ.update({"REDIS": urls[0], "SHARDS": len(urls)})
TASKS = {**TASKS, **json.loads(os.environ.get("RTQ_TEST_TASKS", "{}"))}
DEBUG = bool(os.environ.get("RTQ_TEST_DEBUG"))
SILENCED_SYSTEM_CHECKS = ["rtq.W001"]  # short leases are what makes the tests short
DATABASES["default"]["NAME"] = os.environ.get("RTQ_DATABASE", ":memory:")
if "RTQ_TEST_DATABASE" in os.environ:
    DATABASES["default"] = json.loads(os.environ["RTQ_TEST_DATABASE"])
    if DATABASES["default"]["ENGINE"].endswith("mysql"):
        install_driver()
LANGUAGE_CODE = "en"
