"""What tests of the metrics share."""

import pytest

pytest.importorskip("prometheus_client")
