"""What tests of transactions share."""

from tests.core.transactions.conftest import names, other, with_options  # noqa: F401
