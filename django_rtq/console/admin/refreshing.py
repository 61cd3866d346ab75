"""Refreshes of open pages, which fetch their own URL (D42): what the browser has already is not sent again.

A page consists of regions. Each has a digest of its content, and a refresh names the digests that the page has: their
regions are sent empty. If nothing else has changed either, the answer is 304, without a body.
"""

from __future__ import annotations

import hashlib
import re

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_string

#: Sent by live.js when it refreshes a page: the digests of its regions. Only regions are rendered then.
REFRESH_HEADER = "X-RTQ-Refresh"

_HEADERS_OF_304 = ("ETag", "Vary", "Cache-Control", "Expires")
_MAX_DIGESTS = 100
_LEAST_BYTES = 1000
_TOKEN = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")\w+')  # another one in each answer


def content_digest(text: str) -> str:
    """A short digest of HTML, whatever its CSRF tokens are."""
    return hashlib.blake2b(_TOKEN.sub("", text).encode(), digest_size=9).hexdigest()


def known_digests(request: HttpRequest) -> frozenset[str]:
    """The regions that the browser has; empty if this is no refresh."""
    return frozenset(request.headers.get(REFRESH_HEADER, "").split()[:_MAX_DIGESTS])


def answer_refresh(request: HttpRequest, response: HttpResponse) -> HttpResponseBase:
    """The response, or 304 if the browser has the same. Different users never share an ETag."""
    etag = f'W/"{content_digest(f"{request.user.pk} {response.content.decode()}")}"'
    response["ETag"] = etag
    patch_vary_headers(response, (REFRESH_HEADER, "Cookie", "Accept-Language", "Accept-Encoding"))
    if request.headers.get("If-None-Match") != etag:
        return _compressed(request, response)
    kept = {name: value for name, value in response.items() if name in _HEADERS_OF_304}
    return HttpResponseNotModified(headers=kept)


def _compressed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response with gzip, if the browser takes it: tables shrink to a tenth."""
    if len(response.content) >= _LEAST_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        # As many random bytes as Django's middleware adds, against attacks that guess secrets from lengths.
        response.content = compress_string(response.content, max_random_bytes=GZipMiddleware.max_random_bytes)
        response["Content-Encoding"] = "gzip"
        response["Content-Length"] = str(len(response.content))
    return response
