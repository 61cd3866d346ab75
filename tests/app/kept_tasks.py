"""Tasks whose arguments are kept with their results, or not."""

from django_rtq import task


@task
def by_default(value, note=""):
    return value


@task(keep_args=True)
def kept(value, note=""):
    return value


@task(keep_args=False)
def not_kept(value, note=""):
    return value
