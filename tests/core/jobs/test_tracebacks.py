"""Tracebacks read as Python writes them, but for the carets."""

import ast
import builtins
import json
import re
import sys
import traceback

import pytest

from django_rtq.core.jobs import failure
from django_rtq.core.jobs.failure import format_error


def caught(function):
    try:
        function()
    except BaseException as error:  # noqa: BLE001
        return error


def descend(depth):
    return json.loads("{") if depth == 0 else descend(depth - 1)


def with_cause():
    try:
        descend(2)
    except ValueError as error:
        raise RuntimeError("not readable") from error


def with_context():
    try:
        descend(2)
    except ValueError:
        {}["missing"]


def without_context():
    try:
        descend(2)
    except ValueError:
        raise RuntimeError("hidden") from None


def with_notes():
    error = KeyError("key")
    if sys.version_info >= (3, 11):
        error.add_note("a note\nof two lines")
    raise error


def misspelt():
    number = 1
    return nmuber + number  # noqa: F821


def syntax():
    compile("1 + * 2", "<formula>", "eval")


def in_a_circle():
    one, two = KeyError("one"), KeyError("two")
    one.__cause__, two.__cause__ = two, one
    raise one


def group():
    if sys.version_info < (3, 11):
        raise ValueError
    raise ExceptionGroup("two of them", [caught(with_cause), ExceptionGroup("one", [caught(with_context)])])  # noqa: F821


KINDS = [
    with_cause, with_context, without_context, with_notes, misspelt, syntax, in_a_circle, group,
    lambda: descend(20),
]  # fmt: skip


def without_carets(text):
    return "".join(line for line in text.splitlines(keepends=True) if not re.fullmatch(r"[ |]+[\^~]+\n", line))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_python_writes_without_carets(kind):
    error = caught(kind)
    expected = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    assert without_carets(format_error(error, error.__traceback__)) == without_carets(expected)


def test_only_a_syntax_error_has_carets():
    texts = [format_error(error, error.__traceback__) for error in map(caught, KINDS)]

    assert [kind for kind, text in zip(KINDS, texts, strict=True) if "^" in text] == [syntax]


def test_of_many_frames_the_last_ones_are_shown():
    error = caught(lambda: descend(40))
    limited = traceback.format_exception(type(error), error, error.__traceback__, limit=-10)

    assert format_error(error, error.__traceback__, max_frames=10) == without_carets("".join(limited))


def test_no_line_of_source_is_compiled(monkeypatch):
    error = caught(with_cause)
    monkeypatch.setattr(ast, "parse", lambda *arguments: pytest.fail("it compiles"))
    format_error(error, error.__traceback__)


def test_no_file_is_looked_up_again(monkeypatch):
    error = caught(with_cause)
    format_error(error, error.__traceback__)
    monkeypatch.setattr(failure.linecache, "checkcache", lambda *names: pytest.fail("it asks the system"))
    format_error(error, error.__traceback__)


@pytest.mark.parametrize(
    "kind", [ValueError, KeyError, SyntaxError, lambda text: builtins.ExceptionGroup(text, [OSError(text)])]
)
def test_long_messages_are_cut(kind):
    if sys.version_info < (3, 11) and kind not in (ValueError, KeyError, SyntaxError):
        pytest.skip("Python 3.10 has no groups")
    error = kind("e" * 1_000_000)
    error.__context__ = ValueError("f" * 1_000_000)
    text = format_error(error, None)
    assert 2 * failure.LONGEST_MESSAGE < len(text) < 4 * failure.LONGEST_MESSAGE
    assert "e…" in text
    assert "…" not in format_error(kind("e" * (failure.LONGEST_MESSAGE - 100)), None)
