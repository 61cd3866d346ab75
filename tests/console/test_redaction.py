"""Redaction: which values are secret."""

import pytest
from django.views.debug import get_default_exception_reporter_filter

from django_rtq import task
from django_rtq.console.redaction import HIDDEN, hidden, hidden_args, redacted
from django_rtq.console.sanitize import parameter_names
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.tasks import registry

NAME = f"{__name__}.sign_in"


def sign_in(user, password, *more, **options):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _task(no_tasks):
    task(sign_in)


# -- by name


@pytest.mark.parametrize("name", ["password", "api_key", "AUTH", "the_secret_one", "signature"])
def test_values_with_such_names_are_hidden(name):
    assert hidden({"a": [{name: "x"}]}) == {"a": [{name: HIDDEN}]}
    assert hidden("x", name) == HIDDEN


def test_arguments_by_place_have_the_names_of_the_parameters():
    assert hidden_args(NAME, ["ann", "x", "y", {"token": "z"}]) == ["ann", HIDDEN, "y", {"token": HIDDEN}]


def test_those_of_an_unknown_task_are_hidden_unless_somebody_may_see_them():
    assert hidden_args("elsewhere.task", ["ann", {"token": "z"}]) == [HIDDEN, HIDDEN]
    assert hidden_args("elsewhere.task", ["ann", {"token": "z"}], shows_unknown=True) == ["ann", {"token": HIDDEN}]


@pytest.fixture
def _forgets_the_filter():
    get_default_exception_reporter_filter.cache_clear()
    yield
    get_default_exception_reporter_filter.cache_clear()


@pytest.mark.usefixtures("_forgets_the_filter")
def test_a_project_says_which_names_are_secret(settings):
    settings.DEFAULT_EXCEPTION_REPORTER_FILTER = f"{__name__}.Weather"
    assert hidden({"weather": 1, "password": 2}) == {"weather": "sunny", "password": 2}


class Weather:
    """A filter of a project."""

    def cleanse_setting(self, key, value):
        if isinstance(value, dict):
            return {k: self.cleanse_setting(k, v) for k, v in value.items()}
        return "sunny" if key == "weather" else value


def test_a_job_that_is_shown_has_no_secrets_but_in_texts():
    shown = redacted(
        JobDetails(
            id="1",
            queue="mail",
            state="dead",
            task=NAME,
            args=["ann", "hunter22", "ftp://ann:hunter22@host"],
            kwargs={"token": "s3cret-token", "n": 1},
            errors=[{"error": "no hunter22"}],
            result={"token": "another", "id": 7},
        )
    )
    assert shown.args == ["ann", HIDDEN, "ftp://ann:hunter22@host"]
    assert shown.kwargs == {"token": HIDDEN, "n": 1}
    assert shown.errors == [{"error": "no hunter22"}]
    assert shown.result == {"token": HIDDEN, "id": 7}


def test_tasks_that_are_not_registered_here_get_no_hint(monkeypatch):
    """A page of dead letters asks for the task of each job several times, and a hint compares it with all tasks."""
    monkeypatch.setattr(registry, "did_you_mean", lambda *_: pytest.fail("a hint was made"))
    assert hidden_args(f"{NAME}s", ["ann"]) == [HIDDEN]
    assert parameter_names(f"{NAME}s") == ()
    assert list(parameter_names(NAME)) == ["user", "password"]
