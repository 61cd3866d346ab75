"""Databases: those of the tests of transactions."""

from tests.core.transactions.conftest import names, other, with_options  # noqa: F401
