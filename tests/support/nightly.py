"""Whether this run of the tests is a long one, which takes its time: RTQ_TEST_NIGHTLY=1."""

import os

IS_NIGHTLY = os.environ.get("RTQ_TEST_NIGHTLY", "") not in ("", "0")
