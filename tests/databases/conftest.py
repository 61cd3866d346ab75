"""Databases: those of the tests of transactions."""

from tests.transactions.conftest import names, other, round_trips, with_options  # noqa: F401
