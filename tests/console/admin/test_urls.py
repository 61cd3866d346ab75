"""URLs of pages."""

from django.urls import reverse

from django_rtq.console.admin.navigation import page_url


def test_a_query_is_added_without_what_is_empty():
    assert page_url("admin", "queue_change", "mail", query={"state": "dead", "task": "", "x": None, "n": 0}) == (
        f"{reverse('admin:django_rtq_queue_change', args=['mail'])}?state=dead&n=0"
    )
