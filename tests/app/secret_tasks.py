"""A task with a secret argument."""

from django_rtq import task


@task
def log_in(user, password):
    return user
