"""A worker serves some of many shards: its name chooses them, and it serves those that nobody else does."""

import time
from collections import Counter

import pytest
from django.core.management.base import CommandError
from django.test import override_settings

from django_rtq.broker.brokers import get_broker
from django_rtq.broker.task_backends import shard_place
from django_rtq.management.commands.rtq_worker import Command
from django_rtq.worker.supervisor.shards import chosen_places, run_in_each
from tests.shards.test_workers import enqueue, worker  # noqa: F401
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import wait_until

PLACES = [shard_place(number) for number in range(64)]


def options_of(*arguments):
    parser = Command().create_parser("manage.py", "rtq_worker")
    return vars(parser.parse_args([str(argument) for argument in arguments]))


def test_a_name_chooses_some_shards_and_the_others_come_behind():
    chosen, others = chosen_places("web-1", PLACES, 8)

    assert len(chosen) == 8
    assert sorted(chosen + others) == sorted(PLACES)
    assert chosen_places("web-1", PLACES, 8) == (chosen, others)
    assert chosen_places("web-1", PLACES, 100) == (PLACES, [])


def test_of_many_hosts_each_shard_has_its_part():
    served = Counter(place for n in range(1000) for place in chosen_places(f"host-{n}", PLACES, 8)[0])

    assert set(served) == set(PLACES)
    assert 90 <= min(served.values()) <= max(served.values()) <= 160  # 125 on average


def test_a_shard_that_is_added_takes_the_place_of_one_other():
    changes = Counter(
        len(set(chosen_places(f"host-{n}", PLACES, 8)[0]) - set(chosen_places(f"host-{n}", PLACES[:-1], 8)[0]))
        for n in range(200)
    )

    assert set(changes) == {0, 1}
    assert changes[1] < 50


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ([], ["", "#1"]),
        (["--shards", "all"], ["", "#1"]),
        (["--shards", "1, 0,1"], ["#1", ""]),
        (["--shard", "1"], ["#1"]),
    ],
)
def test_shards_are_named(shards, arguments, places):
    assert Command().places(options_of(*arguments)) == places


@pytest.mark.parametrize("text", ["", "0", "a", "-1", "1,", "1;2"])
def test_what_is_no_choice_is_refused(text):
    with pytest.raises(CommandError, match="nor their numbers"):
        options_of(f"--shards={text}")


def test_one_option_or_the_other():
    with pytest.raises(CommandError, match="not allowed with"):
        options_of("--shard", 1, "--shards", "all")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--shards", "0,7"], "There is no shard 7"),
        (["--shard", "7"], "There is no shard 7"),
        (["--backend", "mail"], "TASKS has no backend 'mail'"),
        (["--shard", "1", "--backend", "mail"], "either --shard or --backend"),
        (["--queues", "nothing-*"], "No declared queue matches 'nothing-.'"),
        (["--queues", " , "], "--queues is empty"),
        (["--queues", "a b"], "a b"),
    ],
)
def test_what_does_not_exist_is_wrong_usage(shards, monkeypatch, arguments, text):
    monkeypatch.setattr("django_rtq.worker.supervisor.shards.run_in_each", lambda *args, **options: 0)
    with pytest.raises(CommandError, match=text) as refused:
        Command().execute(**options_of(*arguments))
    assert refused.value.returncode == 64


def test_the_exit_code_is_that_of_the_shard_that_cannot_start():
    def serve(place, health_file):
        if not place:
            return 2
        time.sleep(60)  # it starts: signals end it
        return 0

    assert run_in_each(["", "#1"], serve) == 2


def test_whether_nobody_serves_a_shard(shards, servers):
    command, options = Command(), options_of("--queues", "default")
    assert command._is_unserved("#1", options)
    get_broker("#1").sign_on(["default"], "host:1:x")
    assert not command._is_unserved("#1", options)
    assert command._is_unserved("#1", options_of("--queues", "default,mail"))
    with override_settings(RTQ={"SHARDS": {0: servers[0].url, 1: UNREACHABLE}}):
        assert not command._is_unserved("#1", options)


@pytest.mark.long
def test_a_worker_of_one_shard_serves_the_other_one_if_nobody_does(worker, shards, journal):  # noqa: F811
    running = worker("--shards", 1, is_ready=False)
    handles = [enqueue(1, shard) for shard in (0, 1)]

    assert [handle.get(60) for handle in handles] == ["0-1", "1-1"]
    wait_until(lambda: "this one serves it as well" in running.log)
    assert running.stop() == 0
