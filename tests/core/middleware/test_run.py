"""Middleware around the functions of tasks, in tests: eager() and drain()."""

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone, translation

from django_rtq import JobState, TimeLimitExceeded, task
from django_rtq.core.broker.brokers import get_broker
from tests.app.context_tasks import TENANT
from tests.app.middleware import LOG
from tests.support.apps import drain, eager
from tests.support.jobs import take


@task
def plain(a=0):
    return [a, TENANT.get()]


@task(takes_context=True)
def with_context(context, a=0):
    return [a, context.job_id != "", context.headers]


@task
async def coroutine(a=0):
    return [a, TENANT.get()]


@task(max_attempts=1)
def failing():
    raise ValueError("it broke")


@task(max_attempts=1)
async def afailing():
    raise ValueError("it broke")


FOR_ACME = {"headers": {"tenant": "acme"}}


@pytest.mark.parametrize("each", [plain, coroutine])
def test_the_function_sees_what_the_middleware_sets(broker, middleware, each):
    middleware("TenantMiddleware", "note_middleware")
    each.using(**FOR_ACME).delay(1)
    each.delay(2)

    assert [run.result for run in drain()] == [[1, "acme"], [2, None]]
    name = each.name.rpartition(".")[2]
    assert ["enter acme", f"run {name}", "leave acme", "enter None", f"run {name}", "leave None"] == LOG
    assert TENANT.get() is None


@pytest.mark.parametrize("each", [plain, coroutine])
def test_eager_runs_it_too(middleware, each):
    middleware("TenantMiddleware")
    token = TENANT.set("caller")
    try:
        with eager():
            assert each.delay(1).get() == [1, "caller"]  # the header of the call
            assert each.using(**FOR_ACME).delay(1).get() == [1, "acme"]
        assert TENANT.get() == "caller"
    finally:
        TENANT.reset(token)


@pytest.mark.parametrize("each", [failing, afailing])
def test_it_sees_the_exception_of_the_function(broker, middleware, each):
    middleware("TenantMiddleware")
    each.using(**FOR_ACME).delay()
    (run,) = drain(raise_errors=False)
    assert (run.state, str(run.error)) == (JobState.DEAD, "it broke")
    assert LOG == ["enter acme", "ValueError in acme", "leave acme"]


def test_its_own_exception_fails_the_job(broker, middleware):
    middleware("raising")
    job = plain.using(max_attempts=2).delay()
    first, second = drain(until=3600, raise_errors=False)
    assert (first.state, second.state) == (JobState.RETRYING, JobState.DEAD)
    assert job.refresh().newest_error == ("builtins.ValueError", "the middleware fails")


def test_the_time_limit_covers_it(broker, middleware):
    middleware("endless")
    plain.using(time_limit=0.05, max_attempts=1).delay()
    (run,) = drain(raise_errors=False, time_limits=True)
    assert isinstance(run.error, TimeLimitExceeded)


def test_it_may_change_arguments_and_results(broker, middleware):
    middleware("doubling")
    with_context.using(**FOR_ACME).delay(4)
    assert drain()[0].result == [[8, True, {"tenant": "acme"}]] * 2


def test_a_coroutine_cannot_run_inside_middleware_for_functions(broker, middleware):
    middleware("functions_only")
    coroutine.using(max_attempts=1).delay()
    (run,) = drain(raise_errors=False)
    assert "functions_only: its 'run' can only be put around functions" in str(run.error)


# -- the middleware for languages


@pytest.fixture
def languages(rtq_settings):
    paths = ["django_rtq.middleware.LanguageMiddleware"]
    with override_settings(RTQ={**settings.RTQ, "MIDDLEWARE": paths}):
        yield
        get_broker().close()


@task
def look():
    return [translation.get_language(), timezone.get_current_timezone_name()]


@task
async def alook():
    return look.func()


@pytest.mark.usefixtures("languages")
@pytest.mark.parametrize("each", [look, alook])
def test_a_job_has_language_and_time_zone_of_its_caller(each):
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        first = each.delay()
    second = each.using(headers={"language": "pt-br", "timezone": "Nowhere/None"}).delay()

    results = {run.id: run.result for run in drain()}
    assert results == {first.id: ["de", "Asia/Tokyo"], second.id: ["pt-br", "UTC"]}
    assert translation.get_language() == settings.LANGUAGE_CODE


@pytest.mark.usefixtures("languages")
def test_without_a_language_there_is_no_header(broker):
    with translation.override(None):
        look.delay()
    assert take(broker).headers == {"timezone": timezone.get_current_timezone_name()}
