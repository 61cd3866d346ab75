"""A clock that a test moves."""


class Clock:
    """time.monotonic() as the test wants it."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now
