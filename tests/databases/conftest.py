"""Databases: those of the tests of transactions."""

from tests.core.transactions.conftest import names, other, round_trips, with_options  # noqa: F401
