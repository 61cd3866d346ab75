"""Receivers and functions of schedules that use the database; for workers that are told to load this module."""

import os

from django.db import connection
from django.dispatch import receiver

from django_rtq import task
from django_rtq.signals import job_promoted, job_reclaimed
from tests.app import journal
from tests.app.tasks import AT_ONCE


def query():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@receiver([job_reclaimed, job_promoted])
def write_down(job_ids, **kwargs):
    query()
    journal.write("noted", str(os.getpid()))


def client_of(name):
    """Asks the database; then the connection is lost behind Django's back, as in a restart of the database."""
    query()
    connection.connection.close()
    return "client"


@task(backoff=AT_ONCE, client=client_of)
def periodic(name):
    journal.write("start", name)


@task(backoff=AT_ONCE)
def is_connected():
    """Whether there is a connection before the first query of this process."""
    return connection.connection is not None


@task(backoff=AT_ONCE)
def insert(name):
    """Write a row into a table of the test."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects (name) VALUES (%s)", [name])
