"""Hosts: the worker processes of each, commands for all of them, and whether a host is drained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django_rtq.broker.broker import Broker
from django_rtq.broker.control import WorkerCommand, read_last_commands, send_commands
from django_rtq.inspector.details import RunningJob, WorkerDetails
from django_rtq.inspector.overview import OverviewReader


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDetails:
    """A host that runs worker processes."""

    name: str
    workers: Sequence[WorkerDetails]  # its processes, those of one rtq_worker together
    #: Workers on any host that have not said where they run: they have just started, or have not responded for long.
    unknown: int = 0
    #: The command that was sent to an rtq_worker last, by its name, if that was less than an hour ago.
    commands: Mapping[str, WorkerCommand] | None = None  # None: they were not read

    @property
    def rtq_workers(self) -> int:
        """How many rtq_worker run on it."""
        return len({worker.supervisor for worker in self.workers})

    @property
    def slots(self) -> int:
        """How many jobs its processes can run at once."""
        return sum(worker.slots for worker in self.workers)

    @property
    def busy(self) -> int:
        """How many slots run a job."""
        return sum(worker.busy for worker in self.workers)

    @property
    def held(self) -> int:
        """How many jobs its processes have claimed. A process may claim several short ones at once."""
        return sum(worker.held for worker in self.workers)

    @property
    def running(self) -> list[RunningJob]:
        """The jobs that its processes run, or have claimed; not all, if there are very many."""
        return [job for worker in self.workers for job in worker.running]

    @property
    def lost(self) -> int:
        """How many of its processes do not respond."""
        return sum(worker.is_lost for worker in self.workers)

    @property
    def quiet(self) -> int:
        """How many of its processes have stopped to claim jobs, because they were asked to be quiet."""
        return sum(worker.is_resting for worker in self.workers)

    @property
    def memory_bytes(self) -> int:
        """The memory of its processes, as far as it is known."""
        return sum(worker.memory_bytes or 0 for worker in self.workers)

    @property
    def versions(self) -> list[str]:
        """The versions of django_rtq that its processes run."""
        return sorted({worker.version for worker in self.workers if worker.version})

    @property
    def project_versions(self) -> list[str]:
        """The versions of the project that its processes run, as far as RTQ["VERSION"] tells."""
        return sorted({worker.project_version for worker in self.workers if worker.project_version})

    @property
    def up_seconds(self) -> float | None:
        """For how long the oldest of its processes has been running."""
        return max((worker.up_seconds for worker in self.workers if worker.up_seconds is not None), default=None)

    @property
    def is_asked_to_work(self) -> bool:
        """Whether the last command to any of its rtq_worker was to claim jobs."""
        return WorkerCommand.WORK in (self.commands or {}).values()

    @property
    def is_drained(self) -> bool:
        """Whether no job runs on it, and none will: it can be switched off.

        True only if all is known: each process responds, has said that it claims nothing, and has no job; nobody has
        woken it since; and no process runs on a host that is not known.
        """
        if not self.workers or self.unknown or self.commands is None or self.is_asked_to_work:
            return False
        return all(worker.is_resting and not worker.is_lost and not worker.held for worker in self.workers)


class HostReader:
    """Reads hosts, and sends commands to their workers. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker, overview: OverviewReader) -> None:
        self._broker, self._overview = broker, overview

    def get(self, name: str) -> HostDetails:
        """One host, in three round trips; without processes, if none of them is known."""
        workers = self._overview.workers(with_usual=True)
        names = _supervisors(worker for worker in workers if worker.host == name)
        (host,) = hosts_of(workers, [name])
        return HostDetails(
            name=name, workers=host.workers, unknown=host.unknown, commands=read_last_commands(self._broker, names)
        )

    def quiet(self, name: str, *, by: str = "") -> list[str]:
        """Ask all rtq_worker of a host to claim no more jobs. Returns the names of those that were asked."""
        return self._send(name, WorkerCommand.QUIET, by=by)

    def wake(self, name: str) -> list[str]:
        """Ask them to claim jobs again."""
        return self._send(name, WorkerCommand.WORK)

    def stop(self, name: str) -> list[str]:
        """Ask them to finish their running jobs and exit, as SIGTERM does."""
        return self._send(name, WorkerCommand.STOP)

    def _send(self, name: str, command: WorkerCommand, *, by: str = "") -> list[str]:
        asked = _supervisors(worker for worker in self._overview.workers() if worker.host == name)
        send_commands(self._broker, asked, command, by=by)
        return asked


def hosts_of(workers: Iterable[WorkerDetails], names: Iterable[str] | None = None) -> list[HostDetails]:
    """Workers by their hosts: these hosts, or all that are known. Workers on unknown hosts are under "", the last."""
    by_host: dict[str, list[WorkerDetails]] = {}
    for worker in workers:
        by_host.setdefault(worker.host, []).append(worker)
    wanted = sorted(by_host, key=lambda name: (not name, name)) if names is None else names
    return [
        HostDetails(
            name=name,
            workers=sorted(by_host.get(name, ()), key=lambda worker: (worker.supervisor, worker.pid, worker.name)),
            unknown=len(by_host.get("", ())),
        )
        for name in wanted
    ]


def _supervisors(workers: Iterable[WorkerDetails]) -> list[str]:
    return list(dict.fromkeys(worker.supervisor_name for worker in workers if worker.supervisor_name))
