"""Headers of a job: small values beside its arguments, such as a request id. Set by using(headers=…) and middleware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_rtq.exceptions import InvalidTask, Unserializable
from django_rtq.jobs import serializer

MAX_NAME_LENGTH = 100
MAX_BYTES = 4096  # of JSON


def headers_option(owner: str, value: Any) -> Mapping[str, Any]:
    """The headers as a dictionary of their own. None: no headers. Raises InvalidTask."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidTask(f"{owner}: headers is {value!r}, but has to be a dictionary of names and JSON values.")
    for name in value:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidTask(
                f"{owner}: headers has the name {name!r}, but names have 1 to {MAX_NAME_LENGTH} printable characters."
            )
    headers = dict(value)
    try:
        text = serializer.dumps(headers, what="headers")
    except Unserializable as error:
        raise InvalidTask(f"{owner}: {error}") from None
    size = len(text.encode())
    if size > MAX_BYTES:
        raise InvalidTask(
            f"{owner}: the headers have {size:,} bytes as JSON, and {MAX_BYTES:,} are the most. "
            "Store large values elsewhere, or pass them as arguments."
        )
    return headers
