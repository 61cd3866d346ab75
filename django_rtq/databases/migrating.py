"""Errors of the database that `migrate` cures."""

from __future__ import annotations

from django.db import DatabaseError, Error

ADVICE = "Run: manage.py migrate django_rtq"
_WORDS = ("no such table", "no such column", "has no column", "does not exist", "doesn't exist", "Unknown column")
_STATES = ("42P01", "42703")  # of PostgreSQL, whose messages may be in another language


def with_advice(error: Exception, alias: str = "default") -> str:
    """The message of an error of the database; if a table or a column is missing, with the command that makes it."""
    state = getattr(error.__cause__, "sqlstate", None) or getattr(error.__cause__, "pgcode", None)
    if not isinstance(error, DatabaseError) or not (state in _STATES or any(word in str(error) for word in _WORDS)):
        return str(error)
    return f"{str(error).strip()}. {ADVICE}{'' if alias == 'default' else f' --database {alias}'}"


def advised(error: Error, alias: str) -> Error:
    """A copy of the error with the message of with_advice(); the error itself if there is no advice."""
    text = with_advice(error, alias)
    return error if text == str(error) else type(error)(text)
