"""Events that are sent to jobs: what they may be, and how their values are written."""

from __future__ import annotations

from typing import Any

from django_rtq.core.jobs import serializer
from django_rtq.core.validation import MAX_STEP_NAME, is_step_name
from django_rtq.exceptions import PayloadTooLarge

MAX_VALUE_BYTES = 65_536


def written_event(event: object, value: Any) -> str:
    """The value of an event as JSON. Raises ValueError for its name, Unserializable and PayloadTooLarge."""
    if not is_step_name(event):
        raise ValueError(
            f"The name of an event is {str(event)[:200]!r}, but has to be a str of 1 to {MAX_STEP_NAME} printable "
            "characters."
        )
    text = serializer.dumps(value, what=f"the value of event {event!r}")
    if len(text.encode()) > MAX_VALUE_BYTES:
        raise PayloadTooLarge(
            f"The value of event {event!r} has {len(text.encode()):,} bytes of JSON, and {MAX_VALUE_BYTES:,} are the "
            "most. Store it and send a key."
        )
    return text
