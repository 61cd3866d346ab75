"""Arguments that are kept with the results of real jobs."""

import pytest

from tests.app import kept_tasks
from tests.support.waiting import PATIENCE

MODULES = {"TASK_MODULES": ["kept_tasks"]}


@pytest.mark.parametrize(("setting", "kept"), [(False, ["kept"]), (True, ["by_default", "kept"])])
def test_the_task_says_it_or_else_the_settings(rtq_worker, setting, kept):
    rtq_worker(KEEP_ARGS=setting, **MODULES)
    jobs = [task.delay(5, note="x") for task in (kept_tasks.by_default, kept_tasks.kept, kept_tasks.not_kept)]
    for job in jobs:
        assert job.get(PATIENCE) == 5

    found = [job.refresh() for job in jobs]

    assert [job.task.rpartition(".")[2] for job in found if job.has_call] == kept
    assert all((job.args, job.kwargs) == ([5], {"note": "x"}) for job in found if job.has_call)
    assert all((job.args, job.kwargs) == ([], {}) for job in found if not job.has_call)


def test_long_arguments_and_those_of_jobs_without_a_result_are_not_kept(rtq_worker):
    rtq_worker(KEEP_ARGS=True, **MODULES)
    long = kept_tasks.by_default.delay("x" * 10_000)
    without = kept_tasks.by_default.using(result_ttl=0).delay(5)
    long.get(PATIENCE), without.get(PATIENCE)

    assert not long.refresh().has_call
    assert long.result == "x" * 10_000
    assert not without.refresh().has_call
