"""Detects test runners, which must not reach the project's Redis."""

from __future__ import annotations

import os
import sys


def is_under_test() -> bool:
    """Whether this process runs tests: after Django's setup_test_environment(), or in a process of pytest."""
    utils = sys.modules.get("django.test.utils")
    if utils is not None and hasattr(utils._TestState, "saved_data"):
        return True
    # Programs that a test starts inherit the variables, but they do not import pytest.
    return "_pytest" in sys.modules and ("PYTEST_VERSION" in os.environ or "PYTEST_CURRENT_TEST" in os.environ)
