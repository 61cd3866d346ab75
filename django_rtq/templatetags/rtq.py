"""The template tags of the admin pages. Django's checks import this in each project, also without its admin."""

from django import template
from django.apps import apps

register = template.Library()
if apps.is_installed("django.contrib.admin"):
    from django_rtq.console.admin.tags import register  # noqa: F401 - Django looks for it here
