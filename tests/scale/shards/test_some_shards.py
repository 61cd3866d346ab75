"""A worker serves all shards, or those that it is told."""

import time

import pytest
from django.core.management.base import CommandError

from django_rtq.core.commands.rtq_worker import Command
from django_rtq.scale.supervisors import run_in_each


def options_of(*arguments):
    parser = Command().create_parser("manage.py", "rtq_worker")
    return vars(parser.parse_args([str(argument) for argument in arguments]))


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ([], ["", "#1"]),
        (["--shards", "0-1"], ["", "#1"]),
        (["--shards", "1,0,1"], ["", "#1"]),
        (["--shards", "1"], ["#1"]),
    ],
)
def test_shards_are_named(shards, arguments, places):
    assert Command().places(options_of(*arguments)) == places


@pytest.mark.parametrize("text", ["", "a", "-1", "1,", "1;2", "1-", "1-2-3", "99999", "all", "3-0"])
def test_what_is_no_choice_is_refused(text):
    with pytest.raises(CommandError, match="names no shard" if text == "3-0" else "are no numbers of shards"):
        options_of(f"--shards={text}")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--shards", "0,7"], "There is no shard 7"),
        (["--shards", "7"], "There is no shard 7"),
        (["--backend", "mail"], "TASKS has no backend 'mail'"),
        (["--shards", "1", "--backend", "mail"], "either a shard or --backend"),
        (["--queues", "nothing-*"], "No declared queue matches 'nothing-.'"),
        (["--queues", " , "], "--queues is empty"),
        (["--queues", "a b"], "a b"),
    ],
)
def test_what_does_not_exist_is_wrong_usage(shards, monkeypatch, arguments, text):
    monkeypatch.setattr("django_rtq.core.commands.rtq_worker.required", lambda name: lambda *args, **options: 0)
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
