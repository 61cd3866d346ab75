"""Redaction: which values are secret, and where they are replaced."""

import json
import sys
import traceback
from datetime import datetime, timezone
from decimal import Decimal

import pytest
from django.views.debug import get_default_exception_reporter_filter

from django_rtq import task
from django_rtq.admin.display.sanitize import parameter_names
from django_rtq.inspector.details import JobDetails, Progress
from django_rtq.inspector.jobs.dead_letters import DeadGroup
from django_rtq.redaction import HIDDEN, MAX_VALUES, Secrets, group_message, hidden, hidden_args, is_unknown, redacted
from django_rtq.tasks import registry

NAME = f"{__name__}.sign_in"
NOW = datetime(2026, 2, 3, tzinfo=timezone.utc)


def sign_in(user, password, *more, **options):
    """A function to be made a task."""


@pytest.fixture(autouse=True)
def _task(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", {})
    task(sign_in)


def secrets(value):
    """Those of a call with this password."""
    return Secrets.of(NAME, ["ann", value], {})


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
    assert Secrets.of("x", [], {"weather": "hailstorm"}).hide("a hailstorm") == f"a {HIDDEN}"


class Weather:
    """A filter of a project."""

    def cleanse_setting(self, key, value):
        if isinstance(value, dict):
            return {k: self.cleanse_setting(k, v) for k, v in value.items()}
        return "sunny" if key == "weather" else value


# -- by value


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("hunter22", "no hunter22 here", f"no {HIDDEN} here"),
        ("hunter22", "xhunter22x", f"x{HIDDEN}x"),
        ("main", "domain main()", f"domain {HIDDEN}()"),
        ("abc", "abc", "abc"),
        ("", "nothing", "nothing"),
        ("    ", "a     b", "a     b"),
        (None, "None", "None"),
        (True, "True", "True"),
        (7, "attempt 7", "attempt 7"),
        (123, "line 123", "line 123"),
        (1234, "PIN 1234, not 12345", f"PIN {HIDDEN}, not 12345"),
        (4111111111111111, "card=4111111111111111.", f"card={HIDDEN}."),
        (12.75, "12.75", HIDDEN),
        (Decimal("1234.5"), "Decimal('1234.5')", f"Decimal('{HIDDEN}')"),
        (NOW, f"{NOW} {NOW!r}", f"{HIDDEN} {HIDDEN}"),
        ("a\nb'c\"dé", "a\nb'c\"dé", HIDDEN),
        ("a\nb'c\"dé", repr("a\nb'c\"dé"), f"'{HIDDEN}'"),
        ("a\nb'c\"dé", json.dumps("a\nb'c\"dé"), f'"{HIDDEN}"'),
        ("a/b?c&d=e", "https://host/?t=a%2Fb%3Fc%26d%3De", f"https://host/?t={HIDDEN}"),
        (["one-two-three", {"id": "four-five-six"}], "one-two-three four-five-six id", f"{HIDDEN} {HIDDEN} id"),
    ],
)
def test_a_value_is_replaced_where_it_stands_unless_it_is_too_short(value, text, shown):
    assert secrets(value).hide(text) == shown


def test_the_longest_is_replaced_first():
    found = Secrets.of(NAME, ["ann", "hunter22"], {"api_key": "hunter22-and-more"})
    assert found.hide("hunter22-and-more hunter22") == f"{HIDDEN} {HIDDEN}"


def test_what_is_not_secret_stays():
    assert secrets("hunter22").hide("ann cannot sign in") == "ann cannot sign in"
    assert not Secrets.of(NAME, ["ann"], {"colour": "turquoise"}).texts


def test_a_secret_that_was_cut_at_the_end_of_a_long_text_is_replaced():
    text = "x" * 300 + " hunter2"
    assert secrets("hunter22-and-more").hide(text) == "x" * 300 + f" {HIDDEN}"
    assert secrets("hunter22-and-more").hide("a hunt") == "a hunt"  # whole


def test_a_secret_that_was_cut_at_the_beginning_of_a_traceback_is_replaced():
    text = "and-more " + "x" * 16_000
    assert secrets("hunter22-and-more").hide(text) == f"{HIDDEN} " + "x" * 16_000


PEM = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 20 + "-----END PRIVATE KEY-----"


@pytest.mark.parametrize("notation", [str, repr, json.dumps])
@pytest.mark.parametrize("behind", ["", ".", "'", " is no key"])
def test_a_private_key_is_replaced_wherever_it_stands(notation, behind):
    shown = secrets(PEM).hide(f"cannot read {notation(PEM)}{behind}")
    assert "MIIE" not in shown
    assert "END" not in shown


@pytest.mark.parametrize("notation", [str, repr])
@pytest.mark.parametrize("cut", [60, 29, 4])
def test_a_private_key_that_was_cut_is_replaced_in_every_notation(notation, cut):
    written = notation(PEM)
    ends_with_it = "x" * 300 + " " + written[:-cut]
    begins_with_it = written[cut:] + " " + "x" * 16_000
    for text in (ends_with_it, begins_with_it):
        shown = secrets(PEM).hide(text)
        assert "MIIE" not in shown
        assert "END" not in shown


def test_a_text_that_becomes_short_without_a_secret_is_searched_for_its_cut_end():
    key = "k" * 8_000 + "-and-more"
    shown = secrets(key).hide("and-more " + "x" * 7_000 + " " + key)
    assert shown == f"{HIDDEN} " + "x" * 7_000 + f" {HIDDEN}"


def test_a_text_of_a_job_with_too_many_secrets_is_hidden_as_a_whole():
    many = secrets([f"secret-{n}" for n in range(MAX_VALUES + 1)])
    assert many.hide("anything") == HIDDEN
    assert many.hide("") == ""


def test_a_job_that_is_shown_has_no_secrets_but_in_its_record():
    shown = redacted(
        JobDetails(
            id="1",
            queue="mail",
            state="dead",
            task=NAME,
            args=["ann", "hunter22", "ftp://ann:hunter22@host"],
            kwargs={"token": "s3cret-token", "n": 1},
            errors=[{"error": "no hunter22", "traceback": "in s3cret-token", "attempt": 1}, {"error": ["hunter22"]}],
            result={"token": "another", "id": 7},
            progress=Progress(done=1, total=None, text="as hunter22", at=None),
            record="hunter22",
        )
    )
    assert shown.args == ["ann", HIDDEN, f"ftp://ann:{HIDDEN}@host"]
    assert shown.kwargs == {"token": HIDDEN, "n": 1}
    assert shown.errors[0] == {"error": f"no {HIDDEN}", "traceback": f"in {HIDDEN}", "attempt": 1}
    assert shown.errors[1] == {"error": f"['{HIDDEN}']"}
    assert shown.result == {"token": HIDDEN, "id": 7}
    assert shown.progress.text == f"as {HIDDEN}"
    assert shown.record == "hunter22"


def test_the_message_of_a_group_has_none():
    group = {"task": NAME, "error_class": "E", "count": 1, "first_at": NOW, "last_at": NOW, "newest_id": "a"}
    group["message"] = "no hunter22"
    assert group_message(DeadGroup(**group, call={"args": ["ann", "hunter22"]})) == f"no {HIDDEN}"
    assert group_message(DeadGroup(**group, call={})) == "no hunter22"
    assert group_message(DeadGroup(**group, call=None)) is None


# -- errors


def raised(make):
    """The error that a function ends with."""
    try:
        make()
    except BaseException as error:  # noqa: BLE001
        return error


def printed(error):
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


class Denied(Exception):
    """Of a project."""


def test_an_error_without_secrets_is_the_error_itself():
    def fail():
        raise Denied("no such user")

    error = raised(fail)
    assert secrets("hunter22").hide_in_error(error) is error
    assert Secrets().hide_in_error(error) is error


def test_a_stand_in_says_the_same_without_the_secrets():
    word = "hunter22"

    def fail():
        try:
            raise KeyError(word)
        except KeyError as error:
            raise Denied(f"no {word}") from error

    error = raised(fail)
    shown = secrets(word).hide_in_error(error)

    assert printed(shown) == printed(error).replace(word, HIDDEN)
    assert f"{__name__}.Denied: no {HIDDEN}" in printed(shown)
    assert f"KeyError: '{HIDDEN}'" in printed(shown)
    assert shown.__traceback__ is error.__traceback__
    assert str(error) == "no hunter22"


def test_errors_that_refer_to_each_other_come_to_an_end():
    first, second = Denied("no hunter22"), Denied("nor hunter22")
    first.__context__, second.__context__ = second, first
    assert "hunter22" not in printed(secrets("hunter22").hide_in_error(first))


class Mute(Exception):
    """Cannot say what is wrong."""

    def __str__(self):
        raise SystemExit


def test_an_error_that_cannot_be_printed_is_told_all_the_same():
    error = Denied("no hunter22")
    error.__cause__ = Mute()
    shown = printed(secrets("hunter22").hide_in_error(error))
    assert "its message could not be made: SystemExit" in shown
    assert "hunter22" not in shown


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups and notes came with 3.11")
def test_groups_and_notes_are_looked_through():
    error = ExceptionGroup("several", [Denied("no hunter22"), Denied("other")])  # noqa: F821
    error.add_note("for hunter22")
    shown = printed(secrets("hunter22").hide_in_error(error))
    assert "hunter22" not in shown
    assert f"no {HIDDEN}" in shown
    assert "other" in shown
    assert f"for {HIDDEN}" in shown


def test_tasks_that_are_not_registered_here_get_no_hint(monkeypatch):
    """A page of dead letters asks for the task of each job several times, and a hint compares it with all tasks."""
    monkeypatch.setattr(registry, "did_you_mean", lambda *_: pytest.fail("a hint was made"))
    assert hidden_args(f"{NAME}s", ["ann"]) == [HIDDEN]
    assert is_unknown(f"{NAME}s")
    assert not is_unknown(NAME)
    assert parameter_names(f"{NAME}s") == ()
    assert list(parameter_names(NAME)) == ["user", "password"]
