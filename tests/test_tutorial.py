"""Does what docs/tutorial.md tells to do, from its first line to its last, and compares what the terminal answers.

- ```python and ```ini blocks are files: their first line names it; "(append)" behind the name: at its end.
- ```console blocks are commands ("$ …") with what they print. "…" stands for any text.
- "ID" in a command is the id that was printed last.
- Commands that do not end run in the background, as in another terminal. "^C" is Ctrl-C for the worker.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest

from testproject.redis_server import PrivateRedis, free_port
from tests.markdown import ROOT, read
from tests.support.forked_commands import ForkedPython

SECONDS = 120  # for each command: a busy machine takes ten to start Django
# What the test has done already: the folder, the environment with this package, and the server of REDIS_URL.
GIVEN = (
    "mkdir bakery && cd bakery",
    "python3 -m venv .venv && . .venv/bin/activate",
    "python -m pip install --quiet ../django_rtq",
    "redis-server --port 6379 --appendonly yes",
)
IN_BACKGROUND = r"python manage\.py (rtq_worker(?! --burst)|runserver)"
# They show what workers have done meanwhile. A reader looks again, too.
MAY_BE_LATE = r"python manage\.py (rtq_(jobs list|check|status)|shell .*_at is not None)|ls "
PAGE = read("docs/tutorial.md")


def steps(page):
    """The blocks as (language, text), in the order of the page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S)


def commands(block):
    """(command, what it prints) of each command of a console block; Ctrl-C is the command ^C."""
    return re.findall(r"^(?:\$ )?(\^C|(?<=\$ ).*)\n((?:(?!\$ |\^C).*\n)*)", block, re.M)


def matches(promised, said):
    """Whether it printed what the page shows. Spaces between columns may differ."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in promised.split("…"))
    return re.fullmatch(pattern.replace(r"\ .*", ".*").replace(r".*\ ", ".*"), " ".join(said.split()), re.S)


class Terminal:
    """Runs the commands of the page in the folder of the project."""

    def __init__(self, folder, redis_url):
        self.folder = folder
        programs = folder / ".bin"
        programs.mkdir()
        program = programs / "django-admin"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m django "$@"\n')
        program.chmod(0o755)
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "REDIS_URL": redis_url}
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        self.environment.pop("DJANGO_SETTINGS_MODULE", None)
        self.background = []
        self.worker = None
        self.printed_id = ""  # the last id of a job: "ID" in commands

    def write(self, text):
        """Write a file, whose name stands in its first line."""
        first, _, content = text.partition("\n")
        name, append = re.fullmatch(r"# ([\w/.-]+)( \(append\))?", first).groups()
        if name.startswith("/"):
            name = name.rpartition("/")[2]
        with (self.folder / name).open("a" if append else "w") as file:
            file.write(content)

    def run(self, command, promised):
        """Run a command and compare what it prints."""
        if command in GIVEN:
            return
        command = re.sub(r"\bID$", self.printed_id, command)
        if command == "^C":
            self.stop_worker()
        elif re.match(IN_BACKGROUND, command):
            self.start(command, promised)
        else:
            deadline = time.monotonic() + SECONDS
            while True:
                said = self.output(command)
                if matches(promised, said):
                    self.printed_id = (re.findall(r"\b[0-9a-f]{32}\b", said) or [self.printed_id])[-1]
                    return
                if not re.match(MAY_BE_LATE, command) or time.monotonic() > deadline:
                    pytest.fail(f"$ {command}\n{said}\ninstead of\n{promised}")

    def output(self, command):
        """All that a command prints."""
        variables, program = re.fullmatch(r"((?:\w+=\w+ )*)(.*)", command).groups()
        if program.startswith("python "):
            given = dict(each.split("=") for each in variables.split())
            log = self.folder / ".said"
            log.unlink(missing_ok=True)
            ForkedPython(shlex.split(program)[1:], self.environment | given, log, self.folder).wait(SECONDS)
            return log.read_text()
        return subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        ).stdout

    def start(self, command, promised):
        """Start what does not end, and wait until it has printed what it promises, or answers."""
        port = free_port()
        log = self.folder / f"terminal-{len(self.background)}.log"
        arguments = shlex.split(command.replace("8000", f"127.0.0.1:{port} --noreload"))[1:]
        process = ForkedPython(arguments, self.environment, log, self.folder)
        self.background.append(process)
        if "rtq_worker" in command:
            self.worker = process
        deadline = time.monotonic() + SECONDS
        while not (answers(port) if "runserver" in command else matches(promised, log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"$ {command}\n{log.read_text()}\ninstead of\n{promised}"
            time.sleep(0.1)

    def stop_worker(self):
        self.worker.send_signal(signal.SIGINT)
        assert self.worker.wait(SECONDS) == 0

    def close(self):
        for process in self.background:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.background:
            process.wait(SECONDS)


def answers(port):
    """Whether the login page of the admin is there."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/admin/login/", timeout=SECONDS) as response:
            return response.status == 200
    except OSError:
        return False


@pytest.fixture
def terminal(tmp_path):
    with PrivateRedis(appendonly=True) as server:
        opened = Terminal(tmp_path, server.url)
        yield opened
        opened.close()


@pytest.mark.long
def test_the_tutorial_works_from_the_first_line_to_the_last(terminal):
    for language, text in steps(PAGE):
        if language == "console":
            for command, promised in commands(text):
                terminal.run(command, promised)
        else:
            terminal.write(text)


def test_the_first_job_takes_nine_commands_at_most():
    first_part = PAGE.partition("rtq_worker --burst")[0]
    typed = [
        command
        for language, text in steps(first_part + "\n```")
        if language == "console"
        for command, _ in commands(text)
    ]
    assert len(typed) <= 9


def test_no_command_of_the_page_is_overlooked():
    typed = [command for language, text in steps(PAGE) if language == "console" for command, _ in commands(text)]
    assert len(typed) == len(re.findall(r"^(?:\$ |\^C)", PAGE, re.M))
    assert set(GIVEN) < set(typed)


@pytest.mark.parametrize(
    ("promised", "said"),
    [("order 1\n", "order 2\n"), ("… stopped\n", "started\n"), ("a … c\n", "a b\n"), ("", "a traceback\n")],
)
def test_another_answer_is_noticed(promised, said):
    assert not matches(promised, said)
    assert matches(promised, promised.replace("…", "anything"))
