"""Arguments and results are the same after a round trip through JSON."""

import contextlib
import enum
import json
from collections import Counter, OrderedDict, defaultdict, namedtuple
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db import models
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy, override
from hypothesis import example, given
from hypothesis import strategies as st

from django_rtq.core.jobs.serializer import TAG, dumps, dumps_call, loads
from django_rtq.exceptions import PayloadError, Unserializable
from tests.support.values import JSON, KEYS, VALUES, exact

LONDON = ZoneInfo("Europe/London")
Point = namedtuple("Point", "x y")


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Size(models.TextChoices):
    BIG = "big", "Very big"


@given(VALUES)
@example([])
@example({})
@example("")
@example(-0.0)
@example(0.1234567890123456)
@example(2**53 + 1)
@example(-(2**64) - 1)
@example(10**4000)
@example("🦄\u2028\x00\n")
@example({TAG: 1})
@example({TAG: ["datetime", "2026-01-01"]})
@example({TAG: {TAG: ["dict", []]}, "b": [{TAG: Decimal("1.50")}]})
@example([{"a": timedelta.min, "b": timedelta.max, "c": timedelta(microseconds=-1)}])
@example([datetime.min, datetime.max, date.min, date.max, time.min, time.max])
@example(Decimal("-0E-400000"))
def test_a_value_comes_back_as_what_it_was(value):
    text = dumps(value)

    assert exact(loads(text)) == exact(value)
    assert exact(loads(text.encode())) == exact(value)
    assert "\n" not in text


@given(JSON)
def test_what_json_can_carry_is_written_as_plain_compact_json(value):
    assert dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(st.lists(VALUES) | st.lists(st.integers()), st.dictionaries(KEYS, VALUES))
@example([True, 1], {})
def test_the_arguments_of_a_call_come_back(args, kwargs):
    fragment = dumps_call(tuple(args), kwargs, names=(), task="t")

    record = loads('{"task":"t"' + (f",{fragment}" if fragment else "") + "}")
    assert exact(record.get("args", [])) == exact(args)
    assert exact(record.get("kwargs", {})) == exact(kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs", "fragment"),
    [
        ((), {}, ""),
        ((7, 42), {}, '"args":[7,42]'),
        ((), {"a": 1}, '"kwargs":{"a":1}'),
        ((7, "é"), {"a": [1, {"b": None}]}, '"args":[7,"é"],"kwargs":{"a":[1,{"b":null}]}'),
        ((date(2026, 1, 2),), {}, '"args":[{"$rtq":["date","2026-01-02"]}]'),
    ],
)
def test_a_call_is_written_as_members_of_an_object_without_empty_parts(args, kwargs, fragment):
    assert dumps_call(args, kwargs, names=["a", "b"], task="t") == fragment


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Size.BIG, "big"),
        (Level.HIGH, 3),
        ({Size.BIG: [Level.HIGH]}, {"big": [3]}),
        (mark_safe("<b>"), "<b>"),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        ({"a": OrderedDict({TAG: 1})}, {"a": {TAG: 1}}),
    ],
)
def test_subclasses_arrive_as_the_plain_value(value, arrives):
    assert exact(loads(dumps(value))) == exact(arrives)


def test_a_lazy_translation_arrives_as_text_in_the_language_of_the_sender():
    with override("de"):
        text = dumps({"day": gettext_lazy("Monday")})

    with override("fr"):
        assert exact(loads(text)) == exact({"day": "Montag"})


@pytest.mark.parametrize(("fold", "hours"), [(0, 1), (1, 0)])
def test_an_aware_datetime_keeps_its_moment_and_offset_but_not_the_name_of_its_zone(fold, hours):
    twice_a_year = datetime(2026, 10, 25, 1, 30, 0, 123456, tzinfo=LONDON, fold=fold)

    arrived = loads(dumps(twice_a_year))

    assert arrived.tzinfo == timezone(timedelta(hours=hours))
    assert arrived.timestamp() == twice_a_year.timestamp()
    assert arrived.microsecond == 123456


def test_nothing_of_the_arguments_is_changed():
    inner = {TAG: (1, date(2026, 1, 1))}
    args = ([inner, Decimal(1)],)

    dumps_call(args, {"a": inner}, names=["x"], task="t")

    assert args == ([{TAG: (1, date(2026, 1, 1))}, Decimal(1)],)


# -- text of others: it gives a value or raises PayloadError


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
