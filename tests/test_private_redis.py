"""The private server of tests, demo and benchmarks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

START = """
from testproject.redis_server import PrivateRedis
print(PrivateRedis().start().pid, flush=True)
input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells it that its parent is gone")
def test_it_ends_when_the_process_that_started_it_is_killed(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", START]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        server = int(parent.stdout.readline())
        assert is_running(server)

        parent.kill()

    wait_until(lambda: not is_running(server))


def is_running(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"  # a zombie
