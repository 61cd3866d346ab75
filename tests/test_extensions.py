"""The list of apps that join in with the core."""

from dataclasses import fields

from django_rtq.core.extension import Extension, parts


def test_each_part_of_each_app_is_there() -> None:
    for field in fields(Extension):
        assert parts(field.name), field.name
