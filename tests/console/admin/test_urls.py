"""URLs of pages are those of reverse()."""

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.test import override_settings
from django.urls import NoReverseMatch, path, reverse

from django_rtq.console.admin.urls import page_url

urlpatterns = [path("elsewhere/", admin.site.urls)]


@pytest.mark.parametrize(
    "name", ["default", "a b/ü?&x_%", "日本", "a.b-c~@:", "x'(!*)=+$,;", "rtq-first-place", '"<\n>\\']
)
def test_names_are_quoted(name):
    expected = reverse("admin:django_rtq_queue_change", args=[quote(name)], current_app="admin")
    assert page_url("admin", "queue_change", name) == expected


def test_a_query_is_added_without_what_is_empty():
    assert page_url("admin", "queue_change", "mail", query={"state": "dead", "task": "", "x": None, "n": 0}) == (
        f"{reverse('admin:django_rtq_queue_change', args=['mail'])}?state=dead&n=0"
    )


def test_other_urls_are_heeded():
    before = page_url("admin", "queue_change", "mail")
    with override_settings(ROOT_URLCONF=__name__):
        assert page_url("admin", "queue_change", "mail") == "/elsewhere/django_rtq/queue/mail/"
    assert page_url("admin", "queue_change", "mail") == before


def test_a_page_or_an_argument_that_is_missing_is_an_error():
    for name, *arguments in (("nosuch",), ("queue_change",), ("queue_change", "")):
        with pytest.raises(NoReverseMatch):
            page_url("admin", name, *arguments)
