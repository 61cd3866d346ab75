"""The admin's pages."""

from django_rtq.admin import schedules as schedules
