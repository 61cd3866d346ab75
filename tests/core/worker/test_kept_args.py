"""Arguments that are kept with results."""

import pytest

from django_rtq import task
from tests.support.apps import drain


@task
def by_default(value, note=""):
    return value


@task(keep_args=True)
def kept(value, note=""):
    return value


@task(keep_args=False)
def not_kept(value, note=""):
    return value


@pytest.fixture
def keep(broker, settings):
    def change(is_kept):
        settings.RTQ = {**settings.RTQ, "KEEP_ARGS": is_kept}

    return change


@pytest.mark.parametrize("setting", [False, True])
def test_the_task_says_it_or_else_the_settings(keep, setting):
    keep(setting)
    jobs = [each.delay(5, note="x") for each in (by_default, kept, not_kept)]
    drain()
    found = [job.refresh() for job in jobs]

    assert [job.has_call for job in found] == [setting, True, False]
    assert all((job.args, job.kwargs) == (([5], {"note": "x"}) if job.has_call else ([], {})) for job in found)


def test_long_arguments_and_those_of_jobs_without_a_result_are_not_kept(keep):
    keep(True)
    long, without = by_default.delay("x" * 10_000), by_default.using(result_ttl=0).delay(5)
    drain()

    assert not long.refresh().has_call
    assert long.result == "x" * 10_000
    assert not without.refresh().has_call
