"""Limits of clients from a function of the project."""

import asyncio
import logging
import sys
from contextlib import contextmanager
from types import ModuleType

import pytest
from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings

from django_rtq import BrokerFull, QueueFull, task
from django_rtq.admin.display.clients import limit_rows
from django_rtq.broker.brokers import get_broker
from django_rtq.tasks import limits_of
from django_rtq.testing import captured
from testproject.shop.models import Tenant
from tests.markdown import blocks, read
from tests.support.jobs import QUEUE

PATH = f"{__name__}.plan_of"
plans = {}
asked = []


def plan_of(client):
    asked.append(client)
    plan = plans.get(client)
    if isinstance(plan, Exception):
        raise plan
    return plan() if callable(plan) else plan


async def async_plan(client):
    return None


@task(client=lambda client: client)
def work(client):
    pass


@task(client=lambda client: client, unique=True)
def once(client):
    pass


@contextmanager
def with_function(path=PATH, **options):
    with override_settings(RTQ={**settings.RTQ, "QUEUES": {QUEUE: {"limits_of": path, **options}}}):
        yield
        get_broker().close()


@pytest.fixture
def function(broker):
    with with_function():
        yield
    plans.clear()
    asked.clear()


def limits_in_redis(inspector, client="acme"):
    found = inspector.limits.read(QUEUE).clients.get(client)
    return {name: limit.value for name, limit in found.limits.items()} if found else {}


def let_a_minute_pass(broker, queue=QUEUE):
    """Of the process and of Redis."""
    for known in list(limits_of._known_until):
        limits_of._known_until[known] -= 61
    key = broker.keys.of(queue).asked_limits
    broker.redis.execute([("ZINCRBY", key, -61_000, client) for client in plans])


@pytest.mark.parametrize("how", ["delay", "adelay", "delay_many", "unique", "adelay unique"])
def test_a_producer_asks_when_it_meets_a_client(function, inspector, how):
    plans["acme"] = {"max_running": 2, "rate": "10/s"}
    for _ in range(2):
        if how == "delay_many":
            work.delay_many([(("acme",), {}), (("other",), {}), (("acme",), {})])
        else:
            target = once if "unique" in how else work
            _ = asyncio.run(target.adelay("acme")) if how.startswith("a") else target.delay("acme")

    assert asked == (["acme", "other"] if how == "delay_many" else ["acme"])
    assert limits_in_redis(inspector) == plans["acme"]
    assert limits_in_redis(inspector, "other") == {}


def test_another_process_does_not_ask_within_the_minute(function, inspector):
    plans["acme"] = {"max_running": 2}
    work.delay("acme")
    limits_of._known_until.clear()

    work.delay("acme")

    assert asked == ["acme"]


def test_a_changed_plan_holds_after_a_minute(function, broker, inspector):
    plans["acme"] = {"max_running": 2}
    work.delay("acme")
    plans["acme"] = {"max_running": 7, "weight": 3}
    work.delay("acme")
    assert limits_in_redis(inspector) == {"max_running": 2}

    let_a_minute_pass(broker)
    work.delay("acme")
    assert limits_in_redis(inspector) == {"max_running": 7, "weight": 3}

    plans["acme"] = None
    let_a_minute_pass(broker)
    work.delay("acme")
    assert limits_in_redis(inspector) == {}


def test_the_limit_holds_for_the_job_that_brought_it(function):
    plans["acme"] = {"max_waiting": 0}

    with pytest.raises(QueueFull):
        work.delay("acme")


def test_a_failure_keeps_what_was_known_and_is_logged_once_a_minute(function, broker, inspector, caplog):
    plans.update(acme={"max_running": 2}, other=ValueError("no such tenant"))
    work.delay("acme")
    plans["acme"] = ValueError("no such tenant")
    let_a_minute_pass(broker)

    for client in ("acme", "other", "acme"):
        assert work.delay(client).state == "queued"

    assert asked == ["acme", "acme", "other"]
    assert limits_in_redis(inspector) == {"max_running": 2}
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    text = f"limits_of failed, the limits that were known of client 'acme' still hold: {PATH}() raised ValueError"
    assert line.getMessage() == text


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        ("free", f"{PATH}('acme') is 'free', but has to be a dictionary of limits"),
        ({"max_runing": 2}, f"{PATH}('acme') has an unknown limit 'max_runing'. Did you mean 'max_running'?"),
        ({"rate": "often"}, f"{PATH}('acme')['rate'] is 'often', but has to be"),
        ({"weight": None}, f"{PATH}('acme')['weight'] is None, but has to be a number from 0.01 to 1,000."),
    ],
)
def test_a_wrong_answer_is_named_and_breaks_nothing(function, inspector, caplog, plan, problem):
    plans["acme"] = plan

    assert work.delay("acme").state == "queued"

    assert limits_in_redis(inspector) == {}
    assert problem in caplog.messages[0]


def test_the_source_is_shown(function, inspector, capsys):
    plans["acme"] = {"max_running": 2, "weight": 3}
    work.delay("acme")

    call_command("rtq_clients", "list", QUEUE)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("acme"))
    assert "2 (limits_of)" in line
    assert "3 (limits_of)" in line
    (found,) = inspector.clients.get("acme", [QUEUE])
    assert {row["source"] for row in limit_rows(found.in_force, found.own)} == {"limits_of"}


def test_jobs_without_a_client_and_other_queues_do_not_ask(function):
    work.delay("")
    work.using(queue_name="other").delay("acme")

    assert asked == []


def test_it_is_not_asked_where_there_is_no_redis(function):
    with captured():
        work.delay("acme")

    assert asked == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_async", [False, True])
def test_the_function_may_use_the_database(function, inspector, is_async):
    def query():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 3")
            return {"max_running": cursor.fetchone()[0]}

    plans["acme"] = query
    _ = asyncio.run(work.adelay("acme")) if is_async else work.delay("acme")

    assert limits_in_redis(inspector) == {"max_running": 3}


def test_a_failed_query_leaves_the_transaction_of_the_caller_usable(function, database):
    def query():
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")

    plans["acme"] = query
    with transaction.atomic():
        work.delay("acme")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    assert asked == ["acme"]


def test_an_error_of_redis_is_that_of_delay(function, redis):
    plans["acme"] = {"max_running": 2}
    work.delay("")
    with redis.full_memory(), pytest.raises(BrokerFull):
        work.delay("acme")

    assert limits_of._known_until["", QUEUE, "acme"] > 0


def test_few_clients_are_remembered(function, monkeypatch):
    monkeypatch.setattr(limits_of, "MOST_REMEMBERED", 3)

    for number in range(10):
        work.delay(str(number))

    assert len(limits_of._known_until) <= 4


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("tests.nowhere.limits", "tests.nowhere.limits cannot be imported: ModuleNotFoundError"),
        (f"{__name__}.missing", f"{__name__}.missing cannot be imported: ImportError"),
        (f"{__name__}.async_plan", "has to be a function, and not an async one."),
        (f"{__name__}.plans", "has to be a function, and not an async one."),
    ],
)
def test_the_check_names_functions_that_cannot_be_used(broker, caplog, path, problem):
    with with_function(path):
        found = [message for message in checks.run_checks(tags=["rtq"]) if message.id == "rtq.E008"]
        assert [message.msg for message in found if problem in message.msg]
        assert work.delay("acme").state == "queued"
    assert problem in caplog.messages[0]


def test_the_check_accepts_the_function_and_does_not_call_it(function):
    assert [message for message in checks.run_checks(tags=["rtq"]) if message.id == "rtq.E008"] == []
    assert asked == []


@pytest.mark.django_db
def test_the_example_of_the_docs_says_limits(broker, inspector, monkeypatch):
    found = {file: code for file, code in blocks(read("docs/limits.md")) if "limits_of" in code or "PLANS" in code}
    for name in ("shop", "shop.models", "shop.tenants"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["shop.models"].Tenant = Tenant
    exec(compile(found["shop/tenants.py"], "docs/limits.md", "exec"), vars(sys.modules["shop.tenants"]))
    exec(compile(found["settings.py"], "docs/limits.md", "exec"), options := {})
    Tenant.objects.create(slug="acme", plan="paid")

    with override_settings(RTQ={**settings.RTQ, "QUEUES": options["RTQ"]["QUEUES"]}):
        work.using(queue_name="mail").delay("acme")
        work.using(queue_name="mail").delay("unknown")
        get_broker().close()
    limits_of.load_function.cache_clear()

    ((name, client),) = inspector.limits.read("mail").clients.items()
    assert (name, client.limits["weight"].value, client.limits["weight"].is_from_function) == ("acme", 5, True)
