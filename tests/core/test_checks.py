"""`manage.py check` reports settings that cannot work; with --deploy it asks the Redis server too."""

import pytest
from django.core.checks import ERROR, WARNING, run_checks
from django.db import connections
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.checks import check_commits, check_databases, check_server, check_settings
from tests.support.apps import needs
from tests.support.redis_server import UNREACHABLE


def found(**options):
    """The level, id and hint of what is found."""
    with override_settings(RTQ=options):
        return [(message.level, message.id, message.hint) for message in check_settings()]


def test_good_settings_are_passed_over():
    assert found(REDIS=UNREACHABLE) == []
    assert found(REDIS=UNREACHABLE, LEASE_SECONDS=5) == []


@pytest.mark.usefixtures("no_test_runner")
@pytest.mark.parametrize(
    "options", [{}, {"REDIS": ""}, {"REDIS": UNREACHABLE, "LEASE": 5}, {"REDIS": UNREACHABLE, "MAX_ATTEMPTS": 0}]
)
def test_settings_that_cannot_be_read_are_an_error(options):
    assert found(**options) == [(ERROR, "rtq.E001", None)]


@pytest.mark.parametrize("name", ["x" * 201, "a\nb"])
def test_a_name_that_no_client_can_have_is_an_error(name):
    with override_settings(RTQ={"REDIS": UNREACHABLE, "QUEUES": {"mail": {"clients": {"acme": {}, name: {}}}}}):
        (message,) = check_settings()

    assert message.msg == (
        f"RTQ[\"QUEUES\"]['mail']['clients']: a name is {name[:50]!r}…, but has to be at most 200 printable characters."
    )


def test_missing_settings_are_no_trouble_while_debugging():
    with override_settings(RTQ=None, DEBUG=True):
        assert check_settings() == []


@pytest.mark.parametrize("seconds", [1, 4.9])
def test_a_short_lease_is_a_warning(seconds):
    with override_settings(RTQ={"REDIS": UNREACHABLE, "LEASE_SECONDS": seconds}):
        (message,) = check_settings()

    assert (message.level, message.id) == (WARNING, "rtq.W001")
    assert message.msg == (f'RTQ["LEASE_SECONDS"] is {seconds}: on a busy machine it may expire, and jobs run twice.')
    assert message.hint == "Set it to 5 or more; the default is 15."


def cache_at(location, backend="django.core.cache.backends.redis.RedisCache"):
    return {"default": {"BACKEND": backend, "LOCATION": location}}


@pytest.mark.parametrize("backend", ["django.core.cache.backends.redis.RedisCache", "django_redis.cache.RedisCache"])
@pytest.mark.parametrize("location", ["redis://localhost:1/3", "redis://127.0.0.1:1/3"])
def test_a_cache_that_would_empty_the_queues_is_an_error(backend, location):
    with override_settings(RTQ={"REDIS": "redis://localhost:1/3"}, CACHES=cache_at(location, backend)):
        (message,) = check_settings()

    assert (message.level, message.id) == (ERROR, "rtq.E003")
    assert message.msg.startswith("The queues are in redis://localhost:1/3, which the cache 'default' uses too.")


@pytest.mark.parametrize("location", ["redis://localhost:1/4", "redis://localhost:2/3", "redis://elsewhere:1/3"])
def test_a_cache_in_another_place_is_no_trouble(location):
    with override_settings(RTQ={"REDIS": "redis://localhost:1/3"}, CACHES=cache_at(location)):
        assert check_settings() == []


def test_a_cache_that_is_not_in_redis_or_cannot_be_opened_is_no_trouble_of_ours():
    for backend in ("django.core.cache.backends.locmem.LocMemCache", "no.such.backend.Cache"):
        with override_settings(
            RTQ={"REDIS": "redis://localhost:1/3"}, CACHES=cache_at("redis://localhost:1/3", backend)
        ):
            assert check_settings() == []


@pytest.mark.usefixtures("no_test_runner")
@pytest.mark.django_db  # checks of models ask what the database can do
def test_the_checks_are_django_checks_with_a_tag_of_their_own():
    with override_settings(RTQ=None):
        assert [message.id for message in run_checks(tags=["rtq"])] == ["rtq.E001"]
        assert "rtq.E001" in [message.id for message in run_checks()]


def found_on_server(url, **options):
    with override_settings(RTQ={"REDIS": url, **options}):
        found = [(message.level, message.id, message.msg) for message in check_server()]
        get_broker().close()
        return found


@needs("console")
def test_the_server_is_asked_for_a_deploy(redis, redis_server):
    ((level, name, text),) = found_on_server(redis_server.url)

    assert (level, name) == (WARNING, "rtq.W002")
    assert text.endswith("Set appendonly yes.")


def test_a_server_that_refuses_us_is_an_error(redis, redis_server):
    ((level, name, text),) = found_on_server(f"redis://127.0.0.1:{redis_server.port}/99")

    assert (level, name) == (ERROR, "rtq.E004")
    assert text.endswith(f"DB index is out of range (127.0.0.1:{redis_server.port})")


@needs("console")
def test_the_server_is_asked_although_the_settings_have_a_warning(redis, redis_server):
    assert [name for _, name, _ in found_on_server(redis_server.url, LEASE_SECONDS=3)] == ["rtq.W002"]


def test_a_server_that_is_away_is_passed_over():
    assert found_on_server(UNREACHABLE) == []


def found_in_databases(monkeypatch, **options):
    for alias in connections.settings:
        monkeypatch.setitem(connections.settings[alias], "CONN_MAX_AGE", 60)
    defaults = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "CONN_MAX_AGE": 0, "OPTIONS": {}}
    monkeypatch.setitem(connections.settings, "other", {**defaults, **options})
    return [(message.level, message.id, message.msg) for message in check_databases()]


@pytest.mark.parametrize("engine", ["django.db.backends.postgresql", "django.db.backends.sqlite3"])
def test_a_database_to_which_each_job_connects_anew_is_a_warning_for_a_deploy(monkeypatch, engine):
    assert found_in_databases(monkeypatch, ENGINE=engine) == [
        (
            WARNING,
            "rtq.W003",
            "Each job that uses the database 'other' opens a new connection: its CONN_MAX_AGE is 0.",
        )
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"CONN_MAX_AGE": 60},
        {"CONN_MAX_AGE": None},
        {"OPTIONS": {"pool": True}},
        {"OPTIONS": {"pool": {"min_size": 2}}},
        {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
        {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:shop?mode=memory"},
        {"ENGINE": "django.db.backends.dummy"},
    ],
)
def test_kept_connections_pools_and_databases_in_memory_are_passed_over(monkeypatch, options):
    assert found_in_databases(monkeypatch, **options) == []


# -- jobs of TASKS and commits


@pytest.mark.parametrize(
    ("setting", "option", "is_found"),
    [
        ({}, {}, False),
        ({"ENQUEUE_ON_COMMIT": False}, {}, True),
        ({"ENQUEUE_ON_COMMIT": True}, {}, False),
        ({"ENQUEUE_ON_COMMIT": False}, {"on_commit": True}, False),
        ({}, {"on_commit": False}, True),
    ],
)
def test_jobs_of_tasks_that_do_not_wait_for_commits_are_a_warning(setting, option, is_found):
    backends = {
        "mail": {"BACKEND": "django_rtq.backend.RTQBackend", "OPTIONS": option},
        "other": {"BACKEND": "example.Backend", "OPTIONS": {"on_commit": False}},
    }
    with override_settings(RTQ={"REDIS": UNREACHABLE, **setting}, TASKS=backends):
        messages = check_commits()

    assert [message.id for message in messages] == ["rtq.W004"] * is_found
    assert all("TASKS['mail']" in message.msg for message in messages)


@pytest.mark.parametrize(
    ("rule", "engine", "is_found"),
    [
        (None, "django.db.backends.dummy", True),
        (True, "django.db.backends.dummy", True),
        ("main", "django.db.backends.dummy", False),
        (None, "django.db.backends.sqlite3", False),
    ],
)
def test_a_database_without_an_engine_whose_commit_jobs_await_is_a_warning(monkeypatch, rule, engine, is_found):
    databases = {"default": {"ENGINE": engine}, "main": {"ENGINE": "django.db.backends.sqlite3"}}
    monkeypatch.setattr(connections, "settings", databases)
    with override_settings(RTQ={"REDIS": UNREACHABLE, "ENQUEUE_ON_COMMIT": rule}, TASKS={}):
        messages = check_commits()

    assert [message.id for message in messages] == ["rtq.W004"] * is_found


def test_a_project_without_databases_gets_no_warning_about_commits(monkeypatch):
    monkeypatch.setattr(connections, "settings", {"default": {"ENGINE": "django.db.backends.dummy"}})
    with override_settings(RTQ={"REDIS": UNREACHABLE}, TASKS={}):
        assert check_commits() == []
