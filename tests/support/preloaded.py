"""What the server of forked_commands imports before it forks: all that needs no settings of Django."""

# ruff: noqa: F401
from contextlib import suppress

import django.contrib.admin
import django.core.cache.backends.locmem
import django.core.handlers.wsgi
import django.core.management.base
import django.db.backends.sqlite3.base
import django.db.models
import django.test.runner
import pytest

import django_rtq.core.broker.broker
import django_rtq.core.checks
import django_rtq.core.commands.command
import django_rtq.core.logs
import django_rtq.core.scheduler.scheduler
import django_rtq.core.worker.supervisor.supervisor

with suppress(ModuleNotFoundError):  # it is an app
    import django_rtq.monitoring
