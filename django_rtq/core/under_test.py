"""Detects test runners, which must not reach the project's Redis."""

from __future__ import annotations

import os
import sys


def is_under_test() -> bool:
    """Whether this process runs tests: after Django's setup_test_environment(), or in a process of pytest."""
    utils = sys.modules.get("django.test.utils")
    return (utils is not None and hasattr(utils._TestState, "saved_data")) or is_pytest()


def is_pytest() -> bool:
    """Whether this is a process of pytest. Programs that a test starts inherit the variables, but do not import it."""
    return "_pytest" in sys.modules and ("PYTEST_VERSION" in os.environ or "PYTEST_CURRENT_TEST" in os.environ)
