"""Values that JSON cannot carry are refused, with a message that says where they are and what to do."""

import enum
import io
import math
import sys
from collections import defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.db import models
from django.http import QueryDict
from django.test.utils import isolate_apps
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy

from django_rtq.core.jobs.serializer import MAX_DEPTH, TAG, dumps, dumps_call, loads
from django_rtq.exceptions import Unserializable


class Plain(enum.Enum):
    ONE = 1


class Odd:
    """A class of somebody's own."""


class Nowhere(tzinfo):
    def utcoffset(self, moment):
        return None


class NotATime(datetime):
    """Stands for pandas.NaT, which is a datetime and equals nothing."""

    __hash__ = datetime.__hash__

    def __eq__(self, other):
        return False

    def __ne__(self, other):
        return True


with isolate_apps():

    class Order(models.Model):
        class Meta:
            app_label = "shop"

        def __str__(self):
            raise AssertionError("str() of a model may ask the database")


def nested(levels, innermost=1, wrap=lambda inner: [inner]):
    value = innermost
    for _ in range(levels):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: {TAG: inner}])
def test_as_deep_as_allowed_comes_back_and_one_deeper_is_refused(wrap):
    deepest = nested(MAX_DEPTH, date(2026, 1, 1), wrap)

    assert loads(dumps(deepest)) == deepest
    with pytest.raises(Unserializable, match="is nested more than 100 levels deep, or contains itself"):
        dumps(wrap(deepest))


@pytest.mark.parametrize(("value", "key"), [([None], 0), ({}, "a"), ({}, TAG), (defaultdict(list), "a")])
def test_what_contains_itself_is_refused(value, key):
    value[key] = value

    with pytest.raises(Unserializable, match="or contains itself"):
        dumps(value)
    with pytest.raises(Unserializable, match=r'argument "x" .* or contains itself'):
        dumps_call((), {"x": value}, names=[], task="t")


ELSE = "Pass plain data instead: text, numbers, lists, dictionaries."
SURROGATE = (
    "a lone surrogate, which is half a character and has no UTF-8. "
    'Pass text.encode("utf-8", "replace").decode() instead.'
)
KEY = "but the keys of JSON are text. Pass a dictionary with strings as keys, or a list of pairs instead."
REFUSALS = {
    "nan": (math.nan, "is nan, which JSON does not know. Pass None or a string instead."),
    "inf": (-math.inf, "is -inf, which JSON does not know. Pass None or a string instead."),
    "decimal nan": (Decimal("sNaN"), "is sNaN, which is not a number. Pass None or a string instead."),
    "decimal inf": (Decimal("-inf"), "is -Infinity, which is not a number. Pass None or a string instead."),
    "surrogate": ("a\ud800", f"holds {SURROGATE}"),
    "surrogate key": ({"a\ud800": 1}, f'has the key "a\\ud800", which holds {SURROGATE}'),
    "int key": ({1: 2}, f"has the key 1, an int, {KEY}"),
    "true key": ({True: 2}, f"has the key True, a bool, {KEY}"),
    "none key": ({None: 2}, f"has the key None, a NoneType, {KEY}"),
    "tuple key": ({"a": 1, (1, 2): 2}, f"has the key (1, 2), a tuple, {KEY}"),
    "lazy key": ({gettext_lazy("Monday"): 2}, "but the keys of JSON are text"),
    "bytes": (b"abc", "is a bytes, which JSON cannot carry. Pass text instead, for instance in base64."),
    "set": ({1}, "is a set, which JSON cannot carry. Pass a list instead."),
    "frozenset": (frozenset(), "is a frozenset, which JSON cannot carry. Pass a list instead."),
    "range": (range(3), "is a range, which JSON cannot carry. Pass a list instead."),
    "deque": (deque(), "is a collections.deque, which JSON cannot carry. Pass a list instead."),
    "generator": ((i for i in ()), "is a generator, which JSON cannot carry. Pass a list instead."),
    "keys": ({}.keys(), "is a dict_keys, which JSON cannot carry. Pass a list instead."),
    "enum": (Plain.ONE, f"is a {__name__}.Plain, which JSON cannot carry. Pass its value instead."),
    "model": (Order(pk=1), f"is a {__name__}.Order, which JSON cannot carry. Pass its primary key instead."),
    "queryset": (
        models.QuerySet(Order),
        "is a django.db.models.query.QuerySet, which JSON cannot carry. Pass a list of primary keys instead.",
    ),
    "many values": (
        QueryDict("a=1&a=2"),
        "is a django.http.request.QueryDict, which JSON cannot carry. "
        "Pass its .dict(), or dict(data.lists()), instead.",
    ),
    "file": (
        io.StringIO(),
        "is an _io.StringIO, which JSON cannot carry. Store it and pass its name instead.",
    ),
    "function": (
        nested,
        "is a function, which JSON cannot carry. Pass a name instead, and look it up in the task.",
    ),
    "class": (Odd, "is a type, which JSON cannot carry. Pass a name instead, and look it up in the task."),
    "object": (Odd(), f"is a {__name__}.Odd, which JSON cannot carry. {ELSE}"),
    "complex": (1j, f"is a complex, which JSON cannot carry. {ELSE}"),
    "zoned time": (
        time(12, tzinfo=ZoneInfo("Europe/London")),
        "has a time zone, but no offset from UTC. Pass a whole datetime instead.",
    ),
    "zone without offset": (
        datetime(2026, 1, 1, tzinfo=Nowhere()),
        "has a time zone, but no offset from UTC. Pass a whole datetime instead.",
    ),
    "hardly off utc": (
        time(12, tzinfo=timezone(timedelta(microseconds=-1))),
        "is under a second off UTC, which Python reads as UTC. Pass it in UTC instead.",
    ),
    "long integer": (10 ** (sys.get_int_max_str_digits() + 1), "cannot be written as text: "),
    "lazy": (
        SimpleLazyObject(lambda: pytest.fail("asked the database")),
        "is a django.utils.functional.SimpleLazyObject, which JSON cannot carry. Pass what the task needs",
    ),
    "no time": (NotATime(1, 1, 1), "is not a time. Pass None instead."),
}


@pytest.mark.parametrize(("value", "trouble"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_come_back_is_refused_with_its_place_and_a_cure(value, trouble):
    with pytest.raises(Unserializable) as plain:
        dumps(value)
    with pytest.raises(Unserializable) as inside:
        dumps([1, {TAG: 2, "when": [value]}], what="args")
    with pytest.raises(Unserializable) as called:
        dumps_call((1, value), {}, names=["account", "order"], task="shop.tasks.send")

    assert str(plain.value).startswith("value ")
    assert trouble in str(plain.value)
    assert str(inside.value) == str(plain.value).replace("value ", 'args[1]["when"][0] ', 1)
    assert str(called.value) == str(plain.value).replace("value ", 'shop.tasks.send(): argument "order" ', 1)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2, {3}), {}, "argument 3 is a set"),
        ((), {"order": {3}}, 'argument "order" is a set'),
        ((1, {"lines": [1, {2}]}), {}, 'argument "order" at ["lines"][1] is a set'),
        ((), {"order": {"lines": ({3},)}}, 'argument "order" at ["lines"][0] is a set'),
        ((1,), {TAG: {3}}, 'argument "$rtq" is a set'),
        ((), {1: 2}, "the dictionary of keyword arguments has the key 1, an int, but"),
        (({1},), {"b": {1}}, 'argument "account" is a set'),
        (([math.nan],), {}, 'argument "account" at [0] is nan'),
    ],
)
def test_a_refused_argument_is_called_by_its_name(args, kwargs, message):
    with pytest.raises(Unserializable) as refused:
        dumps_call(args, kwargs, names=["account", "order"], task="shop.tasks.send")

    assert str(refused.value).startswith(f"shop.tasks.send(): {message}")


def test_a_refused_argument_that_contains_itself_is_named_without_its_endless_path():
    order = {}
    order["parent"] = order

    with pytest.raises(Unserializable) as refused:
        dumps_call((order,), {}, names=["order"], task="send")

    assert str(refused.value) == (
        'send(): argument "order" at ' + '["parent"]' * 8 + "… is nested more than 100 levels deep, "
        "or contains itself. Pass something flatter."
    )


def test_names_in_messages_are_safe_to_print():
    with pytest.raises(Unserializable) as refused:
        dumps({"\x1b[31m\n\u202e": {"Größe": {1}}})

    assert str(refused.value).startswith('value["\\u001b[31m\\n\\u202e"]["Größe"] is a set')
