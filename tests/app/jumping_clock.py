"""A wall clock that jumps by up to a day, forth and back, at each look. Imported, it takes the place of Python's."""

import random
import time

_DAY_NS = 86_400 * 10**9
_chance = random.Random(7)
_true_ns = time.time_ns


def _wild_ns():
    return _true_ns() + _chance.randint(-_DAY_NS, _DAY_NS)


time.time_ns = _wild_ns
time.time = lambda: _wild_ns() / 1e9
