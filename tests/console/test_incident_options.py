"""RTQ["INCIDENTS"] is checked."""

import json
from dataclasses import fields

import pytest

from django_rtq.console.incident_options import IncidentOptions
from django_rtq.core.conf.config import read_config
from django_rtq.exceptions import ConfigurationError
from tests.markdown import read as read_page
from tests.markdown import rows, section


def read(value):
    return IncidentOptions(**read_config({"INCIDENTS": value}, debug=True).incidents)


def test_options_that_are_not_set_have_their_defaults():
    assert read({"oldest_seconds": 600}) == IncidentOptions(oldest_seconds=600)
    assert read({}) == IncidentOptions()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "has to be a dictionary of options, like"),
        ([], "has to be a dictionary of options, like"),
        ({"oldest": 5}, "has an unknown option 'oldest'. Did you mean 'oldest_seconds'?"),
        ({"oldest_seconds": 0}, "['oldest_seconds'] is 0, but has to be a number above 0."),
        ({"oldest_seconds": "5"}, "['oldest_seconds'] is '5', but has to be a number above 0."),
        ({"failure_rate": 20}, "['failure_rate'] is 20, but has to be a number above 0, up to 1."),
        ({"client_share": 0}, "but has to be a number above 0, up to 1."),
        ({"dead_letters": 1.5}, "but has to be a whole number above 0."),
        ({"dead_letters": True}, "but has to be a whole number above 0."),
        ({"ignore": "queue_paused"}, 'a list of kinds of incidents, like ["redis_volatile"].'),
        ({"ignore": ["paused"]}, "'paused' is none."),
        ({"ignore": ["long_wait"], "critical": ["long_wait"]}, "has 'long_wait' in 'ignore' and in 'critical'"),
    ],
)
def test_what_is_wrong_is_said(value, problem):
    with pytest.raises(ConfigurationError) as caught:
        read(value)
    assert 'RTQ["INCIDENTS"]' in str(caught.value)
    assert problem in str(caught.value)


def test_the_page_has_every_option_with_its_default():
    page = read_page("docs/incidents.md")
    said = {name.strip("`"): default.strip("`") for name, default, _ in rows(section(page, "## Thresholds"))}
    assert {name: json.loads(default) for name, default in said.items()} == {
        option.name: list(option.default) if option.name in ("ignore", "critical") else option.default
        for option in fields(IncidentOptions)
    }
