"""As process 1 a supervisor reaps the orphans of jobs, and no process that somebody else waits for."""

import os
import subprocess
import sys

import pytest

from tests.support.forked_commands import ROOT
from tests.support.waiting import PATIENCE

SCRIPT = """
import ctypes, os, subprocess, sys, threading, time
import django
django.setup()
if sys.argv[1] == "adopts":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come to us, as to process 1
from django_rtq.core.conf.config import get_config
from django_rtq.core.worker.supervisor.process_pool import ChildProcess, ProcessPool
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.shared_memory import SharedState

pool = ProcessPool(get_config(), WorkerOptions(queues=["default"]))

def child(code, *, orphan=False):
    pid = os.fork()
    if pid == 0:
        if orphan and os.fork() == 0:
            os._exit(0)
        os._exit(code)
    pool.processes.append(ChildProcess(pid, SharedState(1)))

def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2][0]

def until(condition):
    while not condition():
        time.sleep(0.01)

def family():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()

for code in (3, 4, 5):
    child(code, orphan=True)
until(lambda: all(state(each.pid) == "Z" for each in pool.processes))
until(lambda: sys.argv[1] != "adopts" or len(family()) == 6)
until(lambda: all(state(pid) == "Z" for pid in family()))

# A receiver in another thread has started a program that is over, and has not asked for its status yet.
programs = []
thread = threading.Thread(target=lambda: programs.append(subprocess.Popen(["sh", "-c", "exit 7"])) or ask.wait(30))
ask = threading.Event()
thread.start()
until(lambda: programs and state(programs[0].pid) == "Z")

# Whoever adopts nobody leaves alone what others have started in the main thread, too.
mine = subprocess.Popen(["sh", "-c", "exit 9"])
until(lambda: state(mine.pid) == "Z")
if sys.argv[1] == "adopts":
    mine.wait()

codes = sorted(os.waitstatus_to_exitcode(status) for _, status in pool.reap())
pool.reap()
print("own", codes)
print("mine", mine.wait())
print("left", [pid for pid in family()])
print("program", programs[0].wait())
ask.set()
thread.join()

child(6, orphan=True)
until(lambda: state(pool.processes[0].pid) == "Z")
own = pool.processes.pop()
pool.processes.append(own)
print("late", [os.waitstatus_to_exitcode(status) for _, status in pool.reap()])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize("how", ["adopts", "does not"])
def test_orphans_are_collected_and_no_status_is_stolen(redis_server, how):
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, how],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "RTQ_REDIS_URL": redis_server.url},
        cwd=ROOT,
        capture_output=True,
        timeout=PATIENCE,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["own [3, 4, 5]", "mine 9", "left []", "program 7", "late [6]"]
