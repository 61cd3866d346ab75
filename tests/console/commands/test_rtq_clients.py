"""rtq_clients: limits of a queue and its clients, and paused clients."""

import getpass
import json
import re
from datetime import timedelta

import pytest
from django.core.management import load_command_class

from django_rtq.limits.limit_kinds import LIMIT_KINDS
from tests.support.commands import run
from tests.support.jobs import claim, queued_job

HEADING = "CLIENT QUEUED SCHEDULED RUNNING OLDEST WAIT STARTS RUN TIME FAIR SHARE LIMITS STATE"


def shown(text):
    """The lines of a list; each wait is 0.0 s."""
    return [re.sub(r"(\d\.\d s|(< )?\d+ ms) ", "0.0 s ", " ".join(line.split())) for line in text.splitlines()]


def test_limits_are_set_and_shown(broker):
    for _ in range(3):
        queued_job(broker, client="acme")
    queued_job(broker, client="")

    assert run("rtq_clients", "limit", "default", "--each-client", "--max-running", "1").code == 0
    run("rtq_clients", "limit", "default", "--whole-queue", "--max-running", "1000")
    run("rtq_clients", "limit", "default", "--client", "acme", "--client", "zeta", "--max-running", "2")
    run("rtq_clients", "limit", "default", "--whole-queue", "--max-waiting", "5000")
    while claim(broker, 5):
        pass

    assert shown(run("rtq_clients", "list", "default", "--no-color").out) == [
        "Whole queue: Running jobs: 1,000 (set at run time); Waiting jobs: 5,000 (set at run time)",
        "Each client: Running jobs: 1 (set at run time)",
        HEADING,
        "acme 1 0 2 0.0 s - - - Running jobs: 2 (set at run time) at its limit of 2 running jobs",
        "(none) 0 0 1 - - - - Running jobs: 1 (set at run time, for each client) at its limit of 1 running job",
        "zeta 0 0 0 - - - - Running jobs: 2 (set at run time) -",
    ]


def test_rates_are_set_and_shown(broker, rtq):
    for _ in range(3):
        queued_job(broker, client="acme")
    rtq.queues["default"].limit_clients(rate=(1000, timedelta(hours=36)))

    assert run("rtq_clients", "limit", "default", "--client", "acme", "--rate", "2/h", "--burst", "2").code == 0
    run("rtq_clients", "limit", "default", "--whole-queue", "--rate", "3/d")
    claim(broker, 5)
    claim(broker, 5)

    assert shown(run("rtq_clients", "list", "default", "--no-color").out) == [
        "Whole queue: Starts: 3/d (set at run time); next start in 8 h",
        "Each client: Starts: 1000/36h (set at run time)",
        HEADING,
        "acme 2 0 1 0.0 s - - - Starts: 2/h (set at run time); Starts at once: 2 (set at run time) "
        "the queue: next start in 8 h",
    ]
    run("rtq_clients", "limit", "default", "--whole-queue", "--rate", "none")
    claim(broker, 5)
    claim(broker, 5)
    assert "next start in 30 min" in run("rtq_clients", "list", "default").out
    found = run("rtq_clients", "list", "default", "--json").json
    assert found["clients"][0]["holds"]["starts_in_seconds"] > 1000
    assert found["default"]["rate"]["value"] == "1000/36h"


def test_weights_are_set_and_shown(broker, settings):
    queued_job(broker)
    run("rtq_clients", "limit", "default", "--each-client", "--weight", "0.5")
    ran = run("rtq_clients", "limit", "default", "--client", "acme", "--weight", "5")

    assert shown(ran.out) == [
        "Each client: Weight: 0.5 (set at run time)",
        HEADING,
        "acme 0 0 0 - - - - Weight: 5 (set at run time) -",
        "(none) 1 0 0 0.0 s - - - Weight: 0.5 (set at run time, for each client) -",
    ]
    assert run("rtq_clients", "list", "default", "--json").json["clients"][1]["limits"]["weight"]["value"] == 5
    run("rtq_clients", "limit", "default", "--client", "acme", "--weight", "settings")
    assert "acme" not in run("rtq_clients", "list", "default").out


def listed(*arguments):
    """The names in the list of the queue."""
    lines = run("rtq_clients", "list", "default", "--no-color", *arguments).out.splitlines()
    return [line.split()[0] for line in lines[1:]]


def test_the_list_is_sorted_searched_and_limited(broker, readers):
    for client, number in (("bakery", 1), ("Baker", 3), ("florist", 2)):
        for _ in range(number):
            queued_job(broker, client=client)
    queued_job(broker, client="elsewhere", queue="low")

    assert listed() == ["Baker", "florist", "bakery"]
    assert listed("--reverse") == ["bakery", "florist", "Baker"]
    assert listed("--sort", "name") == ["Baker", "bakery", "florist"]
    assert listed("--search", "bak") == ["Baker", "bakery"]
    assert run("rtq_clients", "list", "default", "--search", "x").out == "No client matches.\n"
    assert listed("--reverse", "--limit", "1") == ["bakery", "Listed:"]
    ran = run("rtq_clients", "list", "default", "--limit", "2")
    assert ran.out.splitlines()[-1] == "Listed: 2 of 3 clients. Find others with --search, --sort or --limit."
    found = run("rtq_clients", "list", "default", "--json", "--sort", "name", "--limit", "1").json
    assert (found["matching"], [each["client"] for each in found["clients"]]) == (3, ["Baker"])
    rest = run("rtq_clients", "list", "default", "--json", "--sort", "name", "--after", found["next"]).json
    assert ([each["client"] for each in rest["clients"]], rest["next"]) == (["bakery", "florist"], None)
    assert " ".join(sorted(found["clients"][0])) == (
        "busy_seconds client fair fair_runs holds is_blocked limits oldest_seconds own pause queue queued reason "
        "running runs scheduled starts time"
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["limit", "default", "--max-running", "5"], 64),
        (["limit", "default", "--max-running", "5", "--client", "x", "--whole-queue"], 64),
        (["limit", "default", "--weight", "5", "--whole-queue"], 64),
        (["limit", "unknown", "--max-running", "5", "--whole-queue"], 1),
        (["limit", "default", "--max-running", "5", "--client", "a\nb"], 1),
        (["list", "unknown"], 1),
        (["list", "default", "--limit", "0"], 1),
        (["list", "default", "--sort", "nonsense"], 1),
        (["pause", "default", "x" * 201], 1),
        (["resume", "default", "a\nb"], 1),
        (["purge", "default", "\udcff"], 1),
    ],
)
def test_wrong_usage_changes_nothing(broker, readers, arguments, code):
    queued_job(broker)

    assert run("rtq_clients", *arguments).code == code

    limits = readers.clients.limits("default")
    assert (limits.limits, limits.clients) == ({}, {})


WRONG = [("max_running", "-5"), ("max_running", "1.5"), ("burst", "0"), ("weight", "0"), ("weight", "none")]


@pytest.mark.parametrize(("name", "value"), [*((name, "many") for name in LIMIT_KINDS), *WRONG])
def test_a_wrong_value_is_wrong_usage_of_every_limit(broker, name, value, capsys):
    command = load_command_class("django_rtq", "rtq_clients")

    with pytest.raises(SystemExit) as exit:
        command.run_from_argv(["manage.py", "rtq_clients", "limit", "mail", f"--{name.replace('_', '-')}", value])

    assert exit.value.code == 64
    assert f"'{value}' is not {LIMIT_KINDS[name].allowed}" in " ".join(capsys.readouterr().err.split())


def test_a_client_is_paused_and_resumed(broker):
    job = queued_job(broker, client="a b")
    queued_job(broker, queue="low", client="a b")

    ran = run("rtq_clients", "pause", "*", "a b")

    assert ran.out.splitlines() == [
        "Client a b is paused in default, low. Its running jobs continue, and no new jobs start."
    ]
    assert run("rtq_clients", "pause", "low", "a b").out == "Client a b was already paused.\n"
    assert f"paused by {getpass.getuser()}, " in run("rtq_clients", "list", "default").out
    assert claim(broker, 5) == []
    assert run("rtq_clients", "resume", "default", "a b", "c").out.splitlines() == [
        "Client a b was resumed in default.",
        "Client c is not paused.",
    ]
    assert claim(broker, 5) == [job.id]
    assert run("rtq_clients", "list", "*").code == 1


def test_what_was_paused_before_an_outage_is_told(broker, readers, redis):
    broker.register_queues(["default"])
    redis.answer_once(b"-LOADING Redis is loading the dataset in memory\r\n", around=b"zeta")

    ran = run("rtq_clients", "pause", "*", "acme", "zeta")

    assert ran.code == 1
    assert ran.err.startswith("Client acme is paused in default.")
    assert readers.clients.limits("default").clients.keys() == {"acme"}


def test_the_jobs_of_clients_are_purged(broker, readers):
    for client in ("acme", "acme", "zeta", "other"):
        queued_job(broker, client=client)

    found = run("rtq_clients", "purge", "default", "acme", "zeta", "nobody", "--no-input")

    assert found.code == 0
    assert "queue:default client:acme: 2 jobs were purged." in found.out
    assert "queue:default client:nobody: 0 jobs were purged." in found.out
    assert [one.client for one in readers.clients.busiest("default")] == ["other"]


def test_clients_are_erased(broker, readers):
    for client in ("acme", "acme", "other"):
        queued_job(broker, client=client)

    assert "client:acme: Would erase 2 jobs." in run("rtq_clients", "erase", "acme", "--dry-run").out
    assert run("rtq_clients", "erase", "acme").code == 1  # nobody can confirm it
    found = run("rtq_clients", "erase", "acme", "--no-input")

    assert (found.code, found.out) == (0, "client:acme: 2 jobs were erased.\n")
    assert [one.client for one in readers.clients.busiest("default")] == ["other"]
    assert json.loads(run("rtq_clients", "erase", "other", "--no-input", "--json").out) == {"erased": {"other": 1}}
    assert run("rtq_clients", "erase", "", "--no-input").code == 64
