"""The list of apps that join in with the core."""

from dataclasses import fields

import pytest

from django_rtq.core.extension import Extension, parts, required
from django_rtq.exceptions import ConfigurationError


def test_each_part_of_each_app_is_there() -> None:
    for field in fields(Extension):
        assert parts(field.name), field.name


def test_what_no_app_brings_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_rtq.extensions.EXTENSIONS", [])
    parts.cache_clear()
    with pytest.raises(ConfigurationError, match="brings the part 'placement'"):
        required("placement")
    parts.cache_clear()
