"""The pytest plugin: fixtures for tests of projects. See docs/testing.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django_rtq.testing import CapturedJobs, EagerJobs, FinishedJob

# The fixtures import django_rtq.testing: pytest loads this module in every run, also in those without Django.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """RTQ["TEST"]: let each test have jobs of its own."""
    _forget_jobs()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """The same, after the fixtures of the test."""
    _forget_jobs()


def _forget_jobs() -> None:
    if suite := sys.modules.get("django_rtq.testing.suite"):
        suite.forget_jobs()


@pytest.fixture
def rtq_captured() -> Iterator[CapturedJobs]:
    """Collects jobs; nothing runs. A list of them, with assert_enqueued() and assert_not_enqueued()."""
    from django_rtq.testing import captured

    with captured() as jobs:
        yield jobs


@pytest.fixture
def rtq_eager() -> Iterator[EagerJobs]:
    """Runs jobs at once, where they are enqueued. A list of the runs."""
    from django_rtq.testing import eager

    with eager() as runs:
        yield runs


@pytest.fixture
def rtq_drain() -> Iterator[Callable[..., list[FinishedJob]]]:
    """An empty Redis for this test, and drain(), which runs the jobs in it."""
    from django_rtq.testing import drain, private_redis

    with private_redis():
        yield drain
