"""Middleware around delay() and around the functions of tasks: RTQ["MIDDLEWARE"]. Some that is ready to use."""

from django_rtq.middleware.language import LanguageMiddleware
from django_rtq.middleware.request_id import RequestIDFilter, RequestIDMiddleware, http_request_id, request_id

__all__ = [
    "LanguageMiddleware",
    "RequestIDFilter",
    "RequestIDMiddleware",
    "http_request_id",
    "request_id",
]
