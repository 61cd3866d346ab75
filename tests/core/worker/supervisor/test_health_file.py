"""The file that rtq_worker touches while it lives."""

import subprocess
from types import SimpleNamespace

import pytest

from django_rtq.core.worker.shared_memory import Revoked
from django_rtq.core.worker.supervisor import supervisor
from django_rtq.core.worker.supervisor.supervisor import HealthFile
from tests.markdown import read
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import wait_until

NOW = 1000.0


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes a health file at time 1000, with one process, unless something is changed."""
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: NOW)

    def make(*, path=tmp_path / "health", revoked=(Revoked.NOTHING,), pending=0):
        processes = [SimpleNamespace(shared=SimpleNamespace(revoked=each)) for each in revoked]
        return HealthFile(
            str(path),
            pool=SimpleNamespace(processes=processes),
            forks=SimpleNamespace(pending=pending),
        )

    return make


def test_it_is_touched_while_all_is_well(made, tmp_path):
    made().update()
    assert (tmp_path / "health").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"revoked": ()},
        {"revoked": (Revoked.NOTHING, Revoked.ALL)},
        {"pending": 1},
    ],
)
def test_it_is_not_touched_if_something_is_not(made, tmp_path, change):
    made(**change).update()
    assert not (tmp_path / "health").exists()


def test_it_is_touched_every_two_seconds(made, tmp_path, monkeypatch):
    file, path = made(), tmp_path / "health"
    file.update()
    path.unlink()
    file.update()
    assert not path.exists()
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: NOW + supervisor.TOUCH_SECONDS)
    file.update()
    assert path.exists()


def test_a_file_that_cannot_be_written_is_logged_once(made, tmp_path, monkeypatch, caplog):
    file = made(path=tmp_path / "nowhere" / "health")
    file.update()
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: NOW + supervisor.TOUCH_SECONDS)
    file.update()
    assert [line.message.partition(" cannot")[0] for line in caplog.records] == [
        f"the health file {tmp_path / 'nowhere' / 'health'}"
    ]


def test_it_is_removed_also_if_it_is_not_there(made, tmp_path):
    file = made()
    file.update()
    file.remove()
    file.remove()
    assert not (tmp_path / "health").exists()


def test_without_a_path_there_is_none(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = made(path="")
    file.update()
    file.remove()
    assert list(tmp_path.iterdir()) == []


# -- with real workers


def test_a_worker_touches_it_until_it_stops(rtq_worker, tmp_path):
    path = tmp_path / "health"
    worker = rtq_worker("--processes", 2, "--health-file", path)
    wait_until(path.exists)
    assert subprocess.run(["sh", "-c", probe(path)], check=False).returncode == 0
    assert worker.stop() == 0
    assert not path.exists()
    assert subprocess.run(["sh", "-c", probe(path)], check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_a_file_that_a_killed_worker_has_left_is_removed_at_the_start(rtq_worker, tmp_path):
    path = tmp_path / "health"
    path.write_text("left")
    rtq_worker("--health-file", path)
    wait_until(lambda: path.exists() and not path.read_text())


def test_it_is_touched_again_and_again_while_redis_is_away(rtq_worker, tmp_path):
    path = tmp_path / "health"
    rtq_worker("--health-file", path, url=UNREACHABLE, is_ready=False)
    for _ in range(2):
        wait_until(path.exists)
        path.unlink()


def probe(path):
    """The probe of the documentation, for this file."""
    (command,) = {
        line.partition('"sh", "-c", "')[2].partition('"]')[0]
        for line in read("docs/how-to/run-workers.md").splitlines()
        if '"sh", "-c"' in line
    }
    return command.replace("/tmp/rtq-health", str(path))
