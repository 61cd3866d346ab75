"""Servers and keys: those of the tests of the broker."""

from tests.core.broker.conftest import empty, factory, hour, keys, limits, server  # noqa: F401
