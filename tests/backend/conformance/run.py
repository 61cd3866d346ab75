"""Runs Django's own tests of django.tasks against our backend: python -m tests.backend.conformance.run FOLDER

FOLDER is `tests/tasks` of Django's source. In a copy of it our backends stand in place of DummyBackend and
ImmediateBackend; nothing else is changed. RTQ_REDIS_URL is the address of a server that is emptied.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import django
from django.conf import settings

COLLECTING, DRAINING = (f"tests.backend.conformance.backends.{kind}Backend" for kind in ("Collecting", "Draining"))
MODULES = ("test_dummy_backend", "test_immediate_backend", "test_tasks")
#: What the tests expect of a backend with fewer features, or of one that keeps its results in a list of Python.
SKIPPED = {
    "DummyBackendTestCase.test_refresh_result": "changes the status of a job in a list of the backend",
    "DummyBackendTestCase.test_refresh_result_async": "changes the status of a job in a list of the backend",
    "ImmediateBackendTestCase.test_cannot_get_result": "backends with results can",
    "ImmediateBackendTestCase.test_cannot_refresh_result": "backends with results can",
    "ImmediateBackendTestCase.test_cannot_pass_run_after": "backends that defer can",
}


def copy_tests(source: Path, target: Path) -> None:
    """Copy the tests as the package `tasks`, with our backends in them."""
    (target / "tasks").mkdir()
    for file in source.glob("*.py"):
        text = file.read_text()
        for old, new in (("dummy.DummyBackend", COLLECTING), ("immediate.ImmediateBackend", DRAINING)):
            (name, kind), (there, other) = old.split("."), new.rsplit(".", 1)
            text = text.replace(f"django.tasks.backends.{old}", new)
            text = text.replace(
                f"from django.tasks.backends.{name} import {kind}", f"from {there} import {other} as {kind}"
            )
        (target / "tasks" / file.name).write_text(text)


def set_up(database: Path) -> None:
    """Django with our app, and a server and a database of this run."""
    settings.configure(
        INSTALLED_APPS=["django_rtq"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(database)}},
        RTQ={"REDIS": os.environ["RTQ_REDIS_URL"], "ENQUEUE_ON_COMMIT": False},  # as the tests of both backends expect
        TASKS={"default": {"BACKEND": COLLECTING, "QUEUES": []}},
        USE_TZ=True,
    )
    django.setup()


def load() -> unittest.TestSuite:
    """All tests of the copy; those of SKIPPED are marked."""
    suite = unittest.defaultTestLoader.loadTestsFromNames([f"tasks.{module}" for module in MODULES])
    for case in _cases(suite):
        name = f"{type(case).__name__}.{case._testMethodName}"
        if name in SKIPPED:
            setattr(case, case._testMethodName, unittest.skip(SKIPPED[name])(getattr(case, case._testMethodName)))
    return suite


def _cases(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    return [c for test in suite for c in (_cases(test) if isinstance(test, unittest.TestSuite) else [test])]


def main() -> None:
    """Print the counts as JSON in the last line. The exit code is 1 if a test failed."""
    (source,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        copy_tests(Path(source), Path(folder))
        sys.path.insert(0, folder)
        set_up(Path(folder) / "database.sqlite3")
        found = unittest.TextTestRunner(verbosity=1, stream=sys.stdout).run(load())
    failed = len(found.failures) + len(found.errors)
    sys.stdout.write(json.dumps({"run": found.testsRun, "failed": failed, "skipped": len(found.skipped)}) + "\n")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
