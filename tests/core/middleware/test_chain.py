"""Entries of RTQ["MIDDLEWARE"]: read and checked, and nested around a callable."""

import pytest
from asgiref.sync import iscoroutinefunction
from django.core.checks import run_checks
from django.test import override_settings

from django_rtq.core.middleware import check, wrap
from django_rtq.exceptions import ConfigurationError
from tests.app.middleware import LOG

HERE = "tests.app.middleware"


@pytest.fixture(autouse=True)
def log():
    LOG.clear()
    yield LOG
    LOG.clear()


def test_the_first_middleware_is_the_outermost():
    order = []
    call = wrap([f"{__name__}.first", f"{__name__}.second"], "run", order.append)
    call(order)
    assert order == ["first", "second", order]


def first(run):
    def call(job):
        job.append("first")
        return run(job)

    return call


def second(run):
    def call(job):
        job.append("second")
        return run(job)

    return call


def test_without_middleware_nothing_is_wrapped():
    assert wrap([], "run", print) is print


def test_a_class_in_the_form_of_django_is_called_with_run(log):
    assert wrap([f"{HERE}.DjangoForm"], "run", str)(3) == "3"
    assert log == ["django form"]


def test_around_a_coroutine_function_the_chain_is_one():
    async def run(job): ...

    assert iscoroutinefunction(wrap([f"{HERE}.note_middleware", f"{HERE}.DjangoForm"], "run", run))


def test_middleware_that_is_not_used_is_left_out():
    assert wrap([f"{HERE}.unused", f"{HERE}.TenantMiddleware"], "enqueue", print).__name__ == "add_tenant"
    assert wrap([f"{HERE}.unused"], "run", print) is print


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nosuchmodule.x", "nosuchmodule.x cannot be imported: No module named 'nosuchmodule'"),
        (f"{HERE}.nothing", 'does not define a "nothing" attribute'),
        ("nodots", "nodots cannot be imported: nodots doesn't look like a module path"),
        (f"{HERE}.number", "is 7, but has to be a function that gets `run`"),
        (f"{HERE}.NeedsArguments", "cannot be created without arguments"),
        (f"{HERE}.Broken", "cannot be created without arguments: KeyError: 'TENANTS'"),
        ("tests.app.tasks.note", "note is <Task tests.app.tasks.note>, but has to be a function that gets `run`"),
        ("json.dumps", "its factory for 'run' raised TypeError: Object of type function is not JSON serializable. It"),
        ("builtins.int", "raised TypeError: int() argument must be"),
        (f"{HERE}.returns_nothing", "its factory for 'run' returned None, but has to return a callable"),
        (
            f"{HERE}.functions_only",
            "its 'run' can only be put around functions, but the project has tasks that are cor",
        ),
        (f"{HERE}.coroutines_only", "can only be put around coroutine functions, but the project has tasks that are f"),
    ],
)
def test_what_is_wrong_is_a_system_check(path, said):
    with override_settings(RTQ={"MIDDLEWARE": [path]}):
        (message,) = [message for message in run_checks(tags=["rtq"]) if message.id == "rtq.E007"]
    assert message.msg.startswith(f'RTQ["MIDDLEWARE"]: {path}')
    assert said in message.msg


def test_middleware_for_functions_does_where_no_task_is_a_coroutine():
    check([f"{HERE}.functions_only"], has_functions=True, has_coroutines=False)
    check([f"{HERE}.coroutines_only"], has_functions=False, has_coroutines=True)
    with pytest.raises(ConfigurationError):
        check([f"{HERE}.functions_only"], has_functions=True, has_coroutines=True)


@pytest.mark.parametrize("value", ["shop.queue.tenant", [3], {"a": 1}])
def test_the_setting_is_a_list_of_paths(value):
    with override_settings(RTQ={"MIDDLEWARE": value}):
        (message,) = [message for message in run_checks(tags=["rtq"]) if message.id == "rtq.E001"]
    assert 'has to be a list of dotted paths, like ["shop.queue.TenantMiddleware"]' in message.msg
