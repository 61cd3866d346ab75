"""The admin, and what an uptime monitor asks."""

from django.urls import path

from django_rtq.monitoring.health import health_view
from testproject import urls

urlpatterns = [*urls.urlpatterns, path("health/rtq/", health_view)]
