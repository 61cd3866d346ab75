from datetime import timedelta

from django.contrib.auth.models import Group
from django.db import transaction

from django_rtq import task


@task(client=lambda name: name[:1])
def add_group(name):
    return Group.objects.create(name=name).name


@task
async def aadd_group(name):
    await Group.objects.acreate(name=name)


@task(max_attempts=3, backoff=60)
def add_second_group(name):
    if not Group.objects.exists():
        raise LookupError("there is no first group")
    Group.objects.create(name=name)


@task(unique=True)
def count():
    return Group.objects.count()


@task
def idle():
    pass


def sign_up(name):
    """Code of the project that enqueues a job when its transaction commits."""
    transaction.on_commit(lambda: add_group.delay(name))


def invite(name):
    add_group.using(run_after=timedelta(days=3)).delay(name)


def names():
    return sorted(Group.objects.values_list("name", flat=True))
