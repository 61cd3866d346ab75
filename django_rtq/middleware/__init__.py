"""Middleware that is ready to use in RTQ["MIDDLEWARE"]."""

from django_rtq.middleware.language import LanguageMiddleware
from django_rtq.middleware.request_id import RequestIDFilter, RequestIDMiddleware, http_request_id, request_id

__all__ = [
    "LanguageMiddleware",
    "RequestIDFilter",
    "RequestIDMiddleware",
    "http_request_id",
    "request_id",
]
