"""The apps that join in with the core: the one place that knows all of them."""

from django_rtq.core.extension import Extension

EXTENSIONS: list[Extension] = []
