"""Hypothesis strategies for values that the serializer supports, and how to compare them exactly."""

from datetime import datetime, time, timedelta, timezone
from decimal import Decimal

from hypothesis import strategies as st

from django_rtq.core.jobs.serializer import TAG

OFFSETS = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).filter(
    lambda offset: not offset or abs(offset) >= timedelta(seconds=1)
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.dates()
    | st.times()
    | st.times(timezones=OFFSETS.map(timezone))
    | st.datetimes(timezones=OFFSETS.map(timezone))
    | st.datetimes()
    | st.builds(datetime.replace, st.datetimes(), fold=st.sampled_from([0, 1]))
    | st.datetimes(timezones=st.timezones())
    | st.timedeltas()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
)
KEYS = st.text() | st.sampled_from([TAG, f'"{TAG}"', "dict"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != TAG), inner),
    max_leaves=10,
)


def exact(value):
    """What has to be the same on both sides: types, digits, order, offset and fold."""
    match value:
        case list():
            return [exact(item) for item in value]
        case dict():
            return [(exact(key), exact(item)) for key, item in value.items()]
        case datetime() | time() if value.utcoffset() is not None:
            return type(value), value.replace(tzinfo=None, fold=0), value.utcoffset()
        case datetime() | time():
            return type(value), value.tzinfo, value, value.fold
        case float() | Decimal():
            return type(value), repr(value)
    return type(value), value
