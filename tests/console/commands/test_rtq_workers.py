"""rtq_workers: lists workers, and tells them to go quiet, to resume and to stop."""

import pytest

from tests.support.commands import run


@pytest.fixture(autouse=True)
def _user(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "eve")


@pytest.fixture
def workers(broker):
    """Two processes of one rtq_worker, and one of another that serves a queue of its own."""
    for queue, supervisor, names in (("default", "web1-10", ("web1-11", "web1-12")), ("mail", "web2-20", ("web2-21",))):
        infos = {}
        for name in names:
            broker.sign_on([queue], name)
            infos[name] = {
                "host": supervisor[:4],
                "pid": name[-2:],
                "supervisor": supervisor[-2:],
                "supervisor_name": supervisor,
                "queues": queue,
                "slots": 2,
            }
        broker.heartbeat([queue], infos, promote=False)


def commands(redis):
    return {key.decode().rpartition(":")[2]: redis.get(key).decode() for key in redis.keys("rtq:control:*")}


def test_the_list_shows_each_process(workers):
    heading, *rows = run("rtq_workers", "list", "--no-color").out.splitlines()

    assert heading.split()[:5] == ["WORKER", "RTQ_WORKER", "HOST", "PID", "QUEUES"]
    assert [row.split()[:6] for row in rows] == [
        ["web1-11", "web1-10", "web1", "11", "default", "0/2"],
        ["web1-12", "web1-10", "web1", "12", "default", "0/2"],
        ["web2-21", "web2-20", "web2", "21", "mail", "0/2"],
    ]
    assert [row.split()[-1] for row in rows] == ["works"] * 3


@pytest.mark.parametrize(("action", "stored"), [("quiet", "quiet eve"), ("wake", "work"), ("stop", "stop")])
def test_a_command_goes_once_to_the_rtq_worker_of_a_process(redis, workers, action, stored):
    ran = run("rtq_workers", action, "web1-11", "web1-12")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("The rtq_worker of web1-12 was asked to ")
    assert ran.out.count("\n") == 1
    assert commands(redis) == {"web1-10": stored}


@pytest.mark.parametrize(
    ("selection", "asked"),
    [
        (["--all"], ["web1-10", "web2-20"]),
        (["web?-1*"], ["web1-10"]),
        (["web2-20"], ["web2-20"]),
        (["--queue", "mail"], ["web2-20"]),
        (["--queue", "mail", "--queue", "default"], ["web1-10", "web2-20"]),
    ],
)
def test_workers_are_selected_by_name_pattern_or_queue(redis, workers, selection, asked):
    assert run("rtq_workers", "quiet", *selection, "--json").json == {"asked": asked, "failed": []}
    assert commands(redis) == dict.fromkeys(asked, "quiet eve")


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["stop"], "Which workers? Give names, --queue, or --all to stop every one of them.", 64),
        (["stop", "web1-11", "--all"], "Give either names or --all.", 64),
        (["stop", "web1-1"], "No worker is named 'web1-1'. Did you mean ", 1),
        (["stop", "db*"], "No worker is named 'db*'.", 1),
        (["stop", "--queue", "mail1"], "Did you mean 'mail'?", 1),
    ],
)
def test_what_is_not_clear_is_refused(redis, workers, arguments, message, code):
    ran = run("rtq_workers", *arguments)

    assert (ran.code, message in ran.error) == (code, True), ran.error
    assert commands(redis) == {}


def test_a_worker_without_a_known_rtq_worker_is_told(broker, workers):
    broker.sign_on(["default"], "new-1")

    ran = run("rtq_workers", "quiet", "--all")

    assert ran.err.startswith("Nothing was done: worker new-1 is unknown.")
    assert (ran.code, ran.error) == (1, "1 of 3 workers could not be asked.")


def test_without_workers_it_says_how_to_start_one(broker):
    assert run("rtq_workers", "list").out.startswith("No worker is alive. Start one:")
    assert run("rtq_workers", "stop", "--all").code == 0
