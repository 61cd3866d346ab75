"""What tests of the metrics share."""

import pytest

from tests.admin.conftest import round_trips  # noqa: F401

pytest.importorskip("prometheus_client")
