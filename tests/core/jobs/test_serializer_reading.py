"""Deserializing untrusted JSON gives a value or raises PayloadError."""

from __future__ import annotations

import contextlib
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_rtq.core.jobs.serializer import TAG, loads
from django_rtq.exceptions import PayloadError, Unserializable
from tests.support.values import JSON


@pytest.mark.parametrize("text", [" [1]\n", b"[1]", "\t[1] "])
def test_space_around_the_text_is_no_trouble(text):
    assert loads(text) == [1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        b"",
        "{",
        "[1],",
        '{"a":1}{"b":2}',
        "nul",
        "NaN",
        "[Infinity]",
        "[-Infinity]",
        "{'a':1}",
        "{1:2}",
        '"\x01"',
        "\ufeff1",
        b"\xff",
        b'"\xed\xa0\x80"',
        "1" * 5000,
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"$rtq":null}',
        '{"$rtq":[]}',
        '{"$rtq":"datetime"}',
        '{"$rtq":["os.system","true"]}',
        '{"$rtq":["datetime","yesterday"]}',
        '{"$rtq":["datetime",5]}',
        '{"$rtq":["datetime","2026-01-01T00:00:00",7]}',
        '{"$rtq":["time"]}',
        '{"$rtq":["decimal","one"]}',
        '{"$rtq":["uuid","1"]}',
        '{"$rtq":["uuid",1]}',
        '{"$rtq":["timedelta",1e300]}',
        '{"$rtq":["dict",[[[],1]]]}',
        '{"$rtq":[[],1]}',
        '{"$rtq":["decimal","1"],"more":1}',
    ],
)
def test_a_text_that_we_did_not_write_is_refused(text):
    with pytest.raises(PayloadError, match=r"^This payload cannot be read: ") as refused:
        loads(text)

    assert not isinstance(refused.value, Unserializable)
    assert len(str(refused.value)) < 250  # whatever it holds is not repeated


@given(JSON, st.sampled_from(["dict", "datetime", "time", "date", "timedelta", "decimal", "uuid", "other"]))
def test_a_forged_tag_makes_a_value_of_ours_or_a_payload_error(parts, kind):
    forged = {TAG: [kind, *parts] if isinstance(parts, list) else [kind, parts]}
    ours = (dict, datetime, time, date, timedelta, Decimal, UUID)
    try:
        value = loads(json.dumps(forged))
    except PayloadError:
        return
    assert type(value) in ours


@given(st.text() | st.binary())
def test_noise_makes_a_value_or_a_payload_error(noise):
    with contextlib.suppress(PayloadError):
        loads(noise)
