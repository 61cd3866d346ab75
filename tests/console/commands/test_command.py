"""Behaviour that all commands share: options, exit codes, messages."""

import errno

import pytest
from django.core.management import get_commands, load_command_class
from django.test import override_settings

from tests.support.commands import dead_letter, run

OURS = sorted(name for name, app in get_commands().items() if app == "django_rtq")
NO_EXIT_CODES = ("rtq_scheduler", "rtq_worker")  # their descriptions have them
CALLS = [
    ("rtq", "--json"),
    ("rtq_jobs", "list"),
    ("rtq_jobs", "show", "some-id"),
    ("rtq_jobs", "cancel", "some-id"),
    ("rtq_jobs", "run", "--all"),
    ("rtq_jobs", "requeue", "--all"),
    ("rtq_jobs", "discard", "some-id"),
    ("rtq_workers", "list"),
    ("rtq_queues", "list"),
    ("rtq_queues", "forget", "q"),
    ("rtq_workers", "quiet", "--all"),
    ("rtq_queues", "pause", "q"),
    ("rtq_queues", "resume", "q"),
    ("rtq_queues", "purge", "q", "--no-input"),
    ("rtq_tasks", "list"),
    ("rtq_tasks", "resume", "q", "x"),
    ("rtq_clients", "list", "q"),
    ("rtq_clients", "pause", "q", "acme"),
    ("rtq_schedule", "list"),
    ("rtq_schedule", "run", "daily"),
    ("rtq_schedule", "disable", "daily"),
    ("rtq_schedule", "sync"),
]


def from_command_line(name, *args):
    """Run it as manage.py does. Returns the exit code."""
    try:
        load_command_class("django_rtq", name).run_from_argv(["manage.py", name, *args])
    except SystemExit as exit_:
        return exit_.code
    return 0


@pytest.mark.parametrize("name", sorted({*OURS} - {*NO_EXIT_CODES}))
def test_the_help_names_the_exit_codes(name, capsys):
    assert from_command_line(name, "--help") == 0
    assert "Exit codes: 0 " in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["rtq_queues", "rtq_schedule", "rtq_tasks", "rtq_workers"])
def test_json_may_stand_before_or_after_the_action(broker, name):
    before, after = run(name, "--json", "list").json, run(name, "list", "--json").json

    assert len(before) == len(after)
    assert run(name, "list").out[0] not in "[{"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"REDIS": "redis://127.0.0.1:1/0"}, "CommandError: Redis cannot be reached: "),
        ({"REDSI": "x"}, "Did you mean 'REDIS'?"),
    ],
)
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_without_redis_or_with_wrong_settings_they_end_in_one_sentence(call, settings, said, capsys):
    with override_settings(RTQ=settings):
        assert from_command_line(*call) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_messages_of_redis_stay_on_their_line(redis, broker):
    redis.answer_once(b"-ERR \x1b[2Jevil\r\n", around=b"SMEMBERS")

    ran = run("rtq_queues", "pause", "mail")

    assert (ran.code, ran.error) == (1, "Redis refused a command: ResponseError: \\x1b[2Jevil")


@pytest.mark.parametrize("call", [("rtq_jobs",), ("rtq_jobs", "bury"), ("rtq_queues", "pause"), ("rtq", "x")])
def test_wrong_usage_is_code_64(call, capsys):
    assert from_command_line(*call) == 64
    assert "usage:" in capsys.readouterr().err


def test_djangos_options_may_stand_before_and_behind_the_action(broker, capsys):
    for call in (["-v", "2", "requeue", "--all"], ["requeue", "--all", "-v", "2", "--no-color", "--traceback"]):
        dead_letter(broker)
        assert from_command_line("rtq_jobs", *call) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(("args", "coloured"), [(["--force-color"], True), (["--no-color"], False), ([], False)])
def test_colour_only_where_it_is_wanted(broker, capsys, args, coloured):
    dead_letter(broker)

    for call in (["rtq", *args], ["rtq_jobs", *args, "list"], ["rtq_jobs", "list", *args]):
        assert from_command_line(*call) == 0
        assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_ctrl_c_is_no_traceback(broker, monkeypatch, capsys):
    monkeypatch.setattr("django_rtq.console.reading.overview.OverviewReader.read", _raise(KeyboardInterrupt()))

    assert from_command_line("rtq") == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_went_away_is_no_traceback(broker, monkeypatch, capfd):
    broken = BrokenPipeError(errno.EPIPE, "Broken pipe")
    monkeypatch.setattr("django_rtq.console.commands.rtq.Command.handle", _raise(broken))
    replaced = []
    monkeypatch.setattr("os.dup2", lambda source, target: replaced.append(target))

    assert from_command_line("rtq") == 141
    assert len(replaced) == 1
    assert capfd.readouterr().err == ""


def _raise(error):
    def method(*args, **kwargs):
        raise error

    return method
