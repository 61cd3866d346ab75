"""What tests of transactions share."""

from tests.core.transactions.conftest import names, other, round_trips, with_options  # noqa: F401
