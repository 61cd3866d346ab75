"""A plugin of pytest: each test that failed is run once more, alone, after all others. Both results are reported.

It is on where RTQ_SECOND_TRY names a file, as make and CI do. Tests that failed and then passed do not fail the run;
their names are appended to the file.
"""

import os
import subprocess
import sys

import pytest

FILE = "RTQ_SECOND_TRY"
MOST = 10  # more failures than these have a reason
SECONDS = 300


def register(config):
    """To be called by pytest_configure. Processes of pytest-xdist report to the one that started them."""
    if os.environ.get(FILE) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondTry(os.environ[FILE]))


class SecondTry:
    """Counts failures, and tries again when the session ends."""

    def __init__(self, file):
        self._file = file
        self._failures = []  # the name of a test, once for each phase that failed
        self._second = {}  # name -> whether it passed, what was printed

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._failures.append(report.nodeid)

    def pytest_sessionfinish(self, session):
        names = list(dict.fromkeys(self._failures))
        is_cut_short = session.shouldstop or session.shouldfail
        if is_cut_short or not 0 < len(names) <= MOST:
            return
        self._second = {name: run_alone(name, session.config.rootpath) for name in names}
        is_unstable = all(has_passed for has_passed, _ in self._second.values())
        # What else fails a run is counted too: a test that cannot be imported, a coverage below the floor.
        if is_unstable and session.testsfailed == len(self._failures):
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter):
        twice = {name: output for name, (has_passed, output) in self._second.items() if not has_passed}
        unstable = [name for name in self._second if name not in twice]
        for name, output in twice.items():
            terminalreporter.section(f"failed twice: {name}")
            terminalreporter.write_line(output)
        if unstable:
            terminalreporter.section("failed, then passed alone")
            terminalreporter.write_line("\n".join(unstable))
            with open(self._file, "a") as file:  # noqa: PTH123
                file.writelines(f"{name}\n" for name in unstable)


def run_alone(name, folder):
    """Run one test in a session of its own: whether it passed, and what was printed."""
    environment = {key: value for key, value in os.environ.items() if key not in (FILE, "PYTEST_ADDOPTS")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"It was not over after {SECONDS} s."
    return done.returncode == 0, done.stdout + done.stderr
