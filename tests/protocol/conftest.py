"""What tests of scripts share."""

from tests.core.broker.conftest import empty, factory, hour, keys, limits, server  # noqa: F401
