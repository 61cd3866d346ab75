"""Reading the RTQ setting: defaults, types, and error messages."""

import math
from dataclasses import fields

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.conf.config import DEBUG_REDIS, OPTIONS, Config, get_config, read_config, task_modules
from django_rtq.exceptions import ConfigurationError, RTQError
from tests.support.apps import needs, readers_of

URL = "redis://localhost:6379/3"


def refusal(**options):
    with pytest.raises(ConfigurationError) as caught:
        read_config({"REDIS": URL, **options}, debug=False)
    return str(caught.value)


# -- what is read


def test_every_option_has_a_default_but_redis():
    assert read_config({"REDIS": URL}, debug=False) == Config(redis=URL)


def test_every_option_can_be_set():
    options = {
        "REDIS": URL,
        "DB": 5,
        "TEST_REDIS": "redis://localhost:6379/15",
        "TEST": "eager",
        "SHARDS": 1,
        **{"SOCKET_TIMEOUT": 0.5, "SOCKET_CONNECT_TIMEOUT": 1, "WAIT_REPLICAS": 1},
        "PREFIX": "app1",
        "DEFAULT_QUEUE": "main",
        "LEASE_SECONDS": 20,
        "MAX_ATTEMPTS": 1,
        "MAX_CRASHES": 0,
        "TIME_LIMIT": 0.5,
        "KILL_GRACE_SECONDS": 0,
        "RESULT_TTL": 0,
        "MAX_RESULTS": 7,
        "MAX_DEAD_LETTERS": 8,
        "DEAD_LETTER_DAYS": 0.25,
        "MAX_PAYLOAD_BYTES": 2**40,
        "MAX_STEP_RESULT_BYTES": 1,
        "WORKFLOW_TTL": 0,
        "UNKNOWN_TASK_TIMEOUT": 0,
        "MAX_MEMORY_MB": 512,
        "SCHEDULES": {"report": {"task": "shop.tasks.report", "every": 60}},
        "QUEUES": {"mail": {"delayed_first": True}},
        "ADMIN_REFRESH_SECONDS": 0,
        "INCIDENTS": {"oldest_seconds": 600},
        **{"JOB_LOGS": "INFO", "KEEP_ARGS": True},
        "ENQUEUE_ON_COMMIT": "default",
        "OUTBOX": "default",
        "EXACTLY_ONCE_DAYS": 1,
        "EXACTLY_ONCE_MAX_RESULT_BYTES": 0,
        "CELERY_STAND_IN": True,
        "EMAIL": {"backend": "shop.mail.Backend"},
        "MIDDLEWARE": ["shop.queue.tenant_middleware"],
        "TASK_MODULES": ["tasks", "jobs.mail"],
        "VERSION": "2026.11.3",
    }
    assert set(options) == {option.name.upper() for option in fields(Config)}
    config = read_config(options, debug=False)

    assert {name: getattr(config, name.lower()) for name in options} == {
        **options,
        "JOB_LOGS": 20,
        "TASK_MODULES": ("tasks", "jobs.mail"),
        "MIDDLEWARE": ("shop.queue.tenant_middleware",),
    }


@pytest.mark.parametrize("options", [None, {}, {"REDIS": None}, {"REDIS": ""}])
def test_without_an_address_redis_is_the_one_on_this_machine_while_debugging(options):
    assert read_config(options, debug=True).redis == DEBUG_REDIS


@pytest.mark.parametrize("options", [None, {}, {"REDIS": None}, {"REDIS": ""}])
def test_without_an_address_there_is_no_production(options):
    with pytest.raises(ConfigurationError) as caught:
        read_config(options, debug=False)

    assert str(caught.value) == (
        'RTQ["REDIS"] is not set. Write for example RTQ = {"REDIS": "redis://localhost:6379/0"} in your settings '
        "(redis://localhost:6379/0 is the default only while DEBUG is on)."
    )


# -- what is refused


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("LEASE_SECOND", " Did you mean 'LEASE_SECONDS'?"),
        ("redis", " Did you mean 'REDIS'?"),
        ("MAX_ATTEMPT", " Did you mean 'MAX_ATTEMPTS'?"),
        ("X", f" Known are: {', '.join(sorted(option.name.upper() for option in fields(Config)))}."),
        (5, f" Known are: {', '.join(sorted(option.name.upper() for option in fields(Config)))}."),
    ],
)
def test_an_option_that_is_not_known_is_refused_with_the_next_best(key, hint):
    with pytest.raises(ConfigurationError) as caught:
        read_config({"REDIS": URL, key: 1}, debug=False)

    assert str(caught.value) == f"RTQ has an unknown option {key!r}.{hint}"


NUMBERS = {
    "a whole number, 1 or more": "MAX_ATTEMPTS MAX_RESULTS MAX_DEAD_LETTERS MAX_PAYLOAD_BYTES MAX_STEP_RESULT_BYTES",
    "a whole number, 0 or more": "WAIT_REPLICAS MAX_CRASHES EXACTLY_ONCE_MAX_RESULT_BYTES",
    "seconds, more than 0 to ten years": "SOCKET_TIMEOUT SOCKET_CONNECT_TIMEOUT LEASE_SECONDS TIME_LIMIT",
    "seconds, 0 to ten years": "KILL_GRACE_SECONDS RESULT_TTL UNKNOWN_TASK_TIMEOUT WORKFLOW_TTL ADMIN_REFRESH_SECONDS",
    "a number above 0, up to 36500": "DEAD_LETTER_DAYS EXACTLY_ONCE_DAYS",
    "a number above 0": "MAX_MEMORY_MB",
}


@pytest.mark.parametrize(("says", "name"), [(says, name) for says, names in NUMBERS.items() for name in names.split()])
def test_a_number_has_to_be_one(says, name):
    refused = ["5", True, False, math.nan, math.inf, -math.inf, [5], -1, -(10**400)]
    refused += [] if ", 0 " in says else [0]
    refused += [2.5] if "whole" in says else []
    refused += [1e12] if "to" in says else []  # clocks and records cannot hold it
    refused += [] if name in ("TIME_LIMIT", "MAX_MEMORY_MB") else [None]

    for value in refused:
        assert refusal(**{name: value}) == f'RTQ["{name}"] is {value!r}, but has to be {says}.'


def test_all_numbers_are_tried():
    of_numbers = {name for names in NUMBERS.values() for name in names.split()}
    assert {name for name, declared in OPTIONS.items() if "number" in declared.kind.says} <= {*of_numbers, "SHARDS"}
    assert {name for name, declared in OPTIONS.items() if declared.unit == "seconds"} < of_numbers


@pytest.mark.parametrize(
    ("option", "level"), [(None, None), (False, None), (True, 0), ("INFO", 20), ("WARNING", 30), ("CRITICAL", 50)]
)
def test_log_lines_are_kept_from_a_level_on(option, level):
    assert read_config({"REDIS": URL, "JOB_LOGS": option}, debug=False).job_logs == level


@pytest.mark.parametrize("option", [None, "yes", 1])
def test_whether_arguments_are_kept_is_true_or_false(option):
    assert refusal(KEEP_ARGS=option) == f'RTQ["KEEP_ARGS"] is {option!r}, but has to be True or False.'


@pytest.mark.parametrize("option", ["EAGER", "sync", "", True, ["eager"]])
def test_what_becomes_of_jobs_in_tests_is_one_of_three_words(option):
    assert refusal(TEST=option) == f'RTQ["TEST"] is {option!r}, but has to be "eager", "captured" or "drain".'
    assert read_config({"REDIS": URL, "TEST": None}, debug=False).test is None


@pytest.mark.parametrize("option", ["info", "LOUD", 20, 1.5, [], "NOTSET 5"])
def test_a_level_that_logging_does_not_know_is_refused(option):
    assert refusal(JOB_LOGS=option).startswith('RTQ["JOB_LOGS"] is ')
    assert refusal(JOB_LOGS=option).endswith('the name of a level of logging, like "INFO".')


@pytest.mark.parametrize("version", [5, 1.0, True, b"1", "x" * 101, "1\n2", "\ud800"])
def test_a_version_is_a_short_text(version):
    assert refusal(VERSION=version) == (
        f'RTQ["VERSION"] is {version!r}, but has to be text of at most 100 printable characters.'
    )


@pytest.mark.parametrize("version", [None, "", "x" * 100, "2026.11.3 (béta)"])
def test_a_project_may_have_a_version(version):
    assert read_config({"REDIS": URL, "VERSION": version}, debug=False).version == version


@pytest.mark.parametrize("prefix", ["", "a b", "a:b", "{a}", "a*", "a?", "a\n", None, 5, b"a"])
def test_a_prefix_is_a_word(prefix):
    assert refusal(PREFIX=prefix) == (f'RTQ["PREFIX"] is {prefix!r}, but has to be a word without {{}}:*? or spaces.')


@pytest.mark.parametrize("queue", ["", None, "two words", "a:b", 5, "a" * 101])
def test_the_default_queue_has_to_be_a_queue_name(queue):
    assert refusal(DEFAULT_QUEUE=queue) == (
        f'RTQ["DEFAULT_QUEUE"] is {queue!r}, but has to be 1 to 100 of the letters A-Z and a-z, digits, '
        "'.', '_' and '-'."
    )


@needs("limits")
@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        (["mail"], 'RTQ["QUEUES"] is [\'mail\'], but has to be a dictionary of names and options, like {"mail": '),
        ({"two words": {}}, "'two words' is not the name of a queue"),
        ({5: {}}, "5 is not the name of a queue"),
        ({"mail": True}, "RTQ[\"QUEUES\"]['mail'] is True, but has to be a dictionary of options, like "),
        ({"mail": {"delay_first": True}}, "unknown option 'delay_first'. Did you mean 'delayed_first'?"),
        (
            {"mail": {5: True}},
            "unknown option 5. Known are: burst, client, clients, delayed_first, fair_by, max_running, ",
        ),
        ({"mail": {"on_full": "drop"}}, "['on_full'] is 'drop', but has to be \"raise\" or \"wait\"."),
        ({"mail": {"on_full_timeout": 0}}, "['on_full_timeout'] is 0, but has to be a number of seconds above 0, "),
        (
            {"mail": {"on_full_timeout": 5}},
            "RTQ[\"QUEUES\"]['mail'] has 'on_full_timeout', which needs 'on_full': \"wait\".",
        ),
        ({"mail": {"delayed_first": 1}}, "['delayed_first'] is 1, but has to be True or False."),
        ({"mail": {"client": {"weight": 0}}}, "['weight'] is 0, but has to be a number from 0.01 to 1,000."),
        ({"mail": {"client": {"weight": None}}}, "['weight'] is None, but has to be a number from 0.01 to 1,000."),
        ({"mail": {"clients": {"x": {"weight": "5"}}}}, "['x']['weight'] is '5', but has to be a number from 0.01"),
        (
            {"mail": {"client": {"max_running": -1}}},
            "is -1, but has to be a whole number from 0 on, or None for no limit.",
        ),
    ],
)
def test_queues_have_options_that_are_known(queues, problem):
    assert problem in refusal(QUEUES=queues)


def test_a_queue_of_which_nothing_is_said_is_like_all_others():
    config = read_config({"REDIS": URL, "QUEUES": {"mail": {"delayed_first": True}, "low": {}}}, debug=False)

    assert [config.queue(name).delayed_first for name in ("mail", "low", "other")] == [True, False, False]


@pytest.mark.parametrize("modules", ["tasks", None, 5, ("tasks", 5)])
def test_task_modules_have_to_be_a_list_of_names(modules):
    assert refusal(TASK_MODULES=modules) == (
        f'RTQ["TASK_MODULES"] is {modules!r}, but has to be a list of names, like ["tasks"].'
    )


def test_a_lease_that_is_shorter_than_a_hiccup_is_refused():
    assert refusal(LEASE_SECONDS=0.9) == (
        'RTQ["LEASE_SECONDS"] is 0.9: a lease under 1 s would run out while a machine is merely busy. '
        "Set it to 5 or more."
    )
    assert read_config({"REDIS": URL, "LEASE_SECONDS": 1}, debug=False).lease_seconds == 1


@pytest.mark.parametrize("options", ["redis://:secret@localhost/0", ["REDIS"], 5])
def test_settings_that_are_no_dictionary_are_refused_without_showing_them(options):
    with pytest.raises(ConfigurationError) as caught:
        read_config(options, debug=True)

    assert str(caught.value) == (
        f'RTQ is of type {type(options).__name__}, but has to be a dictionary of options, like {{"REDIS": …}}.'
    )


def test_the_error_is_one_of_ours_and_one_of_django():
    assert issubclass(ConfigurationError, RTQError)
    assert issubclass(ConfigurationError, ImproperlyConfigured)


# -- when it is read


def test_settings_that_a_test_overrides_are_read_again():
    outer = get_config()
    with override_settings(RTQ={"REDIS": URL, "PREFIX": "inner"}):
        assert (get_config().prefix, get_config()) == ("inner", get_config())
        broker, readers = get_broker(), readers_of()
        assert (broker.config.prefix, get_broker()) == ("inner", broker)
        with override_settings(RTQ={"REDIS": URL, "PREFIX": "innermost"}):
            assert get_config().prefix == get_broker().config.prefix == "innermost"
            assert readers_of() is not readers
    assert get_config() == outer


@pytest.mark.usefixtures("no_test_runner")
def test_debug_that_a_test_overrides_is_read_again():
    with override_settings(RTQ=None, DEBUG=True):
        assert get_config().redis == get_broker().config.redis == DEBUG_REDIS
        with override_settings(DEBUG=False), pytest.raises(ConfigurationError):
            get_config()


@pytest.mark.parametrize(
    ("options", "modules"),
    [
        ({"TASK_MODULES": ["jobs"]}, ("jobs",)),
        ({"TASK_MODULES": []}, ()),
        ({}, ("tasks",)),
        (None, ("tasks",)),
        ("redis://", ("tasks",)),
        ({"TASK_MODULES": "jobs"}, ("tasks",)),  # refused by the system check; here it must not mean j, o, b, s
        ({"TASK_MODULES": 5, "NONSENSE": 1}, ("tasks",)),
    ],
)
def test_where_tasks_are_is_known_before_anything_else_is_right(options, modules):
    with override_settings(RTQ=options):
        assert task_modules() == modules
