"""How many runs there were at the same time."""

import itertools


def most_at_once(changes):
    """The most runs at a time: 1 for each start and -1 for each end, in their order."""
    return max(itertools.accumulate(changes), default=0)
