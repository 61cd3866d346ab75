"""`manage.py check` speaks of settings that cannot work, and does not ask Redis."""

import pytest
from django.core.checks import ERROR, WARNING, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from django_rtq.checks import check_settings
from tests.conftest import NOBODY


def found(**options):
    """The level, id and hint of what is found."""
    with override_settings(RTQ=options):
        return [(message.level, message.id, message.hint) for message in check_settings()]


def test_good_settings_are_passed_over():
    assert found(REDIS=NOBODY) == []
    assert found(REDIS=NOBODY, LEASE_SECONDS=5) == []


@pytest.mark.parametrize(
    "options", [{}, {"REDIS": ""}, {"REDIS": NOBODY, "LEASE": 5}, {"REDIS": NOBODY, "MAX_ATTEMPTS": 0}]
)
def test_settings_that_cannot_be_read_are_an_error(options):
    assert found(**options) == [(ERROR, "rtq.E001", None)]


def test_missing_settings_are_no_trouble_while_debugging():
    with override_settings(RTQ=None, DEBUG=True):
        assert check_settings() == []


def test_the_error_says_what_to_write():
    with override_settings(RTQ=None):
        (message,) = check_settings()

    assert message.msg.startswith('RTQ["REDIS"] is not set. Write for example RTQ = {"REDIS": "redis://')


@pytest.mark.parametrize("seconds", [1, 4.9])
def test_a_short_lease_is_a_warning(seconds):
    with override_settings(RTQ={"REDIS": NOBODY, "LEASE_SECONDS": seconds}):
        (message,) = check_settings()

    assert (message.level, message.id) == (WARNING, "rtq.W001")
    assert message.msg == (f'RTQ["LEASE_SECONDS"] is {seconds}: a busy machine may miss it, and its jobs run twice.')
    assert message.hint == "Set it to 5 or more; the default is 15."


def test_the_checks_are_django_checks_with_a_tag_of_their_own():
    with override_settings(RTQ=None):
        assert [message.id for message in run_checks(tags=["rtq"])] == ["rtq.E001"]
        assert "rtq.E001" in [message.id for message in run_checks()]


def test_the_command_reports_missing_settings():
    with override_settings(RTQ=None), pytest.raises(SystemCheckError) as caught:
        call_command("check")

    assert '(rtq.E001) RTQ["REDIS"] is not set.' in str(caught.value)
