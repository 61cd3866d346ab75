"""Times as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_AGO = re.compile(rf"(\d{{1,6}})\s*({'|'.join(_UNITS)})")


def past_moment(text: str) -> datetime | None:
    """A time ago, such as 90s, 30min, 2h or 7d, or a date or time, by default in TIME_ZONE.

    None if it is neither, or before 1970.
    """
    text = text.strip()
    found: datetime | None
    try:
        if ago := _AGO.fullmatch(text):
            found = datetime.now(timezone.utc) - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        else:
            found = parse_datetime(text if len(text) > 10 else f"{text}T00:00")
    except (ValueError, OverflowError):
        return None
    if found is None or not 1970 <= found.year < 3000:
        return None
    return make_aware(found) if is_naive(found) else found
