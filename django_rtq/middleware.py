"""Reads RTQ["MIDDLEWARE"] and nests its middleware around a callable; and middleware for languages."""

from django_rtq.core.middleware import (
    LanguageMiddleware,
)

__all__ = [
    "LanguageMiddleware",
]
