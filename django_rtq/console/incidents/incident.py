"""One incident, as a value, and what it says in the language of the reader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from django.utils.timezone import localtime
from django.utils.translation import gettext, gettext_lazy, ngettext_lazy
from django.utils.translation import gettext as _

from django_rtq.console.formatting import format_duration, format_number
from django_rtq.core.broker.server_info import PROBLEMS
from django_rtq.core.jobs.job import StrEnum

#: Placeholders that stand for seconds.
DURATIONS = ("duration",)

#: The sentence of each kind, and sentences that some incidents add. `number` chooses between singular and plural.
TEXTS: dict[str, Any] = {
    "no_worker": gettext_lazy("No worker is running, so no jobs are processed. Start one:"),
    "queue_unserved": ngettext_lazy(
        "Queue %(name)s: %(count)s job waits, and no worker serves the queue. Start one:",
        "Queue %(name)s: %(count)s jobs wait, and no worker serves the queue. Start one:",
        "number",
    ),
    "queues_without_worker": gettext_lazy(
        "No worker serves these queues, which tasks or settings declare: %(names)s. Start one:"
    ),
    "workers_quiet": ngettext_lazy(
        "All workers of %(names)s are quiet: they claim no jobs, and %(count)s job waits.",
        "All workers of %(names)s are quiet: they claim no jobs, and %(count)s jobs wait.",
        "number",
    ),
    "worker_lost": ngettext_lazy(
        "Host %(host)s: %(count)s worker has stopped responding (%(worker)s).",
        "Host %(host)s: %(count)s workers have stopped responding, %(worker)s among them.",
        "number",
    ),
    "worker_silent": ngettext_lazy(
        "Host %(host)s: %(count)s idle worker has stopped asking for work (%(worker)s).",
        "Host %(host)s: %(count)s idle workers have stopped asking for work, %(worker)s among them.",
        "number",
    ),
    "worker_crash_loop": gettext_lazy(
        "Host %(host)s: the processes of a worker crash before they run a job (%(reason)s), so it waits before it "
        "starts others. Its log says why."
    ),
    "host_without_worker": gettext_lazy("Host %(host)s: no worker is alive."),
    "task_failing": gettext_lazy("%(task)s in queue %(name)s is failing: %(failed)s of its last %(runs)s runs."),
    "dead_letters": ngettext_lazy(
        "Queue %(name)s: %(count)s job died in the last hour. Dead letters now: %(dead)s.",
        "Queue %(name)s: %(count)s jobs died in the last hour. Dead letters now: %(dead)s.",
        "number",
    ),
    "job_hung": ngettext_lazy(
        "%(count)s job seems to hang: %(task)s in queue %(name)s, running for %(duration)s.",
        "%(count)s jobs seem to hang. The longest: %(task)s in queue %(name)s, running for %(duration)s.",
        "number",
    ),
    "long_wait": gettext_lazy("Queue %(name)s: the oldest job has been waiting for %(duration)s."),
    "falling_behind": gettext_lazy(
        "Queue %(name)s is falling behind: its oldest job has been waiting for %(duration)s, and waits are growing."
    ),
    "limit_zero": gettext_lazy("Queue %(name)s: jobs wait that no worker may start."),
    "busy_client": gettext_lazy(
        "Queue %(name)s: client %(client)s took %(share)s %% of the work of the last hour, and others wait. The oldest "
        "job has been waiting for %(duration)s."
    ),
    "no_scheduler": gettext_lazy(
        "Queue %(name)s: no scheduler is running, so its scheduled jobs and retries do not start. Were all workers "
        "started with --no-scheduler?"
    ),
    "jobs_lost_place": ngettext_lazy(
        "Queue %(name)s: %(count)s job has a record, but no place in Redis, because its append-only file was cut off. "
        "Workers look for such jobs, and queue them again.",
        "Queue %(name)s: %(count)s jobs have a record, but no place in Redis, because its append-only file was cut "
        "off. Workers look for such jobs, and queue them again.",
        "number",
    ),
    "schedule_missed": ngettext_lazy(
        "Queue %(name)s: %(count)s schedule was due and started no job: %(schedule)s.",
        "Queue %(name)s: %(count)s schedules were due and started no job, %(schedule)s among them.",
        "number",
    ),
    "schedule_invalid": ngettext_lazy(
        "%(count)s schedule cannot run: %(schedule)s. %(error)s.",
        "%(count)s schedules cannot run, %(schedule)s among them. %(error)s.",
        "number",
    ),
    "queue_paused": gettext_lazy("Queue %(name)s is paused."),
    "task_paused": ngettext_lazy(
        "Task %(task)s is paused in %(queues)s, and holds %(count)s job.",
        "Task %(task)s is paused in %(queues)s, and holds %(count)s jobs.",
        "number",
    ),
    "task_unknown": ngettext_lazy(
        "Queue %(name)s: %(count)s job waits, because workers that took it do not know its task %(task)s: %(worker)s.",
        "Queue %(name)s: %(count)s jobs wait, because workers that took them do not know their task %(task)s: "
        "%(worker)s.",
        "number",
    ),
    "several_projects": gettext_lazy(
        "Workers of several projects take jobs from each other, because all use this Redis with the prefix "
        '%(prefix)s: %(names)s. Set another RTQ["PREFIX"] or database in each project.'
    ),
    "client_paused": ngettext_lazy(
        "Client %(client)s is paused in %(queues)s, and holds %(count)s job.",
        "Client %(client)s is paused in %(queues)s, and holds %(count)s jobs.",
        "number",
    ),
    "outbox_lag": ngettext_lazy(
        "%(count)s job waits in the outbox, for %(duration)s.",
        "%(count)s jobs wait in the outbox, the oldest for %(duration)s.",
        "number",
    ),
    "outbox_unknown": gettext_lazy("The database did not say how many jobs wait in the outbox: %(error)s"),
    "workflow_blocked": gettext_lazy(
        "Workflow %(name)s has been blocked by dead jobs for %(duration)s. Requeue them, or discard them:"
    ),
    "workflow_stuck": gettext_lazy(
        "Workflow %(name)s can never go on: nobody knows how some of its jobs have ended, because Redis lost data, or "
        "a worker of an old version ran them. Cancel it, and make it again:"
    ),
    "clock_behind": gettext_lazy(
        "The clock of the Redis server was set back and is %(duration)s behind. Until it has caught up, time passes 10 "
        "percent more slowly for jobs."
    ),
    "data_lost": gettext_lazy(
        "Redis lost its data: the jobs, results and dead letters of before are gone. Limits that were set at run time "
        "are gone, too; those of the settings are stored again."
    ),
    "shard_unreachable": gettext_lazy(
        "Shard %(shard)s does not answer. Its jobs wait, and those of the other shards go on."
    ),
    # Beside the sentence of a kind
    "missing_here": gettext_lazy("Its jobs are missing here."),
    "redis_said": "%(error)s",
    "outbox_error": gettext_lazy("The oldest was refused: %(error)s"),
    "outbox_stands": gettext_lazy(
        "Is a worker or scheduler running with this database, and does its log name an error?"
    ),
    "zero_of_queue": gettext_lazy("The limit max_running of the queue is 0."),
    "zero_of_clients": ngettext_lazy(
        "The limit max_running of each client is 0: %(count)s waits for it.",
        "The limit max_running of each client is 0: %(count)s wait for it.",
        "number",
    ),
    "zero_of_client": gettext_lazy("The limit max_running of client %(client)s is 0."),
    "set_at_run_time": gettext_lazy("It was set at run time. Take it back:"),
    "set_in_settings": gettext_lazy('It is set in RTQ["QUEUES"].'),
    "at_limit": gettext_lazy("The queue runs as many jobs as its limit max_running allows."),
    "at_rate": gettext_lazy("Its rate lets no job start at this moment."),
    "declare_task": gettext_lazy(
        "Start workers with the code that declares the task, in an app of INSTALLED_APPS or in a module of "
        'RTQ["TASK_MODULES"]. Jobs that have waited for %(duration)s are dead.'
    ),
    "new_version": gettext_lazy("It began after the start of version %(version)s."),
    "newest_error": gettext_lazy("Latest error: %(error)s."),
    "newest_failure": gettext_lazy("Latest: %(task)s, %(error)s."),
    "scheduler_missing": gettext_lazy("No scheduler is running for this queue. Start one:"),
    "scheduler_fails": gettext_lazy(
        "A scheduler is running for this queue: its log says why, or it runs another version of the project."
    ),
    "paused_by": gettext_lazy("Paused by %(user)s."),
    "asked_by": gettext_lazy("Asked by %(user)s."),
    "wake_them": gettext_lazy("Wake them:"),
    "reclaim": gettext_lazy("Running jobs that will be reclaimed shortly: %(jobs)s."),
    "no_reclaim": gettext_lazy(
        "Running jobs that are reclaimed when a worker of these queues has started: %(jobs)s (%(names)s)."
    ),
    "no_jobs": gettext_lazy("No job was running there."),
    "jobs_waiting": gettext_lazy("Waiting: %(waiting)s (clients: %(clients)s)."),
}

_translated = gettext  # of texts that are marked elsewhere


def sentence(name: str, shown: Mapping[str, Any]) -> str:
    """The sentence of a kind of incident, or one of the others."""
    text = TEXTS.get(name)
    return str((_translated(PROBLEMS[name.removeprefix("redis_")]) if text is None else text) % shown)


class Severity(StrEnum):
    """How bad an incident is."""

    CRITICAL = "critical"  # jobs do not run, or may get lost
    WARNING = "warning"
    INFO = "info"  # somebody wants it so


def worst_of(incidents: Sequence[Incident]) -> str:
    """The status of a system with these incidents, the worst of which comes first: "critical", "warning" or "ok"."""
    return "ok" if not incidents or incidents[0].severity is Severity.INFO else str(incidents[0].severity)


class Action(StrEnum):
    """What a person can do about an incident. The admin has a link or a button for each."""

    SHOW_QUEUE = "show_queue"
    SHOW_DEAD = "show_dead"  # the dead letters of its queue, task and error
    SHOW_RETRYING = "show_retrying"
    REQUEUE = "requeue"  # these dead letters
    RESUME = "resume"  # its queue
    SHOW_JOB = "show_job"
    SHOW_RUNNING = "show_running"
    SHOW_WORKERS = "show_workers"
    SHOW_CLIENT = "show_client"
    SHOW_SCHEDULES = "show_schedules"
    SHOW_WORKFLOW = "show_workflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that is wrong, with its subject: the fields that are not empty."""

    kind: str  # one of incident_options.KINDS
    severity: Severity
    since: datetime | None = None  # when it began, as Redis knows it; None: unknown
    #: It may have begun before `since`, where what Redis was asked for begins.
    began_earlier: bool = False
    queue: str = ""
    task: str = ""  # the full name
    client: str | None = None  # "" is a client, too
    host: str = ""
    workflow: str = ""  # its id
    shard: str = ""  # its number
    error_class: str = ""  # of the newest failure
    job_id: str = ""
    #: For the text; numbers, names, and seconds where the name is one of texts.DURATIONS.
    values: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()  # names of further sentences in texts.TEXTS
    actions: tuple[Action, ...] = ()
    command: str = ""  # what to run in a shell; "": nothing

    @property
    def id(self) -> str:
        """Kind and subject, which stay the same as long as the incident lasts."""
        client = "" if self.client is None else f"={self.client}"
        more = filter(None, (self.workflow, self.shard))
        return "\n".join((self.kind, self.queue, self.task, client, self.host, *more))

    @property
    def is_critical(self) -> bool:
        """Whether jobs do not run, or may get lost."""
        return self.severity is Severity.CRITICAL

    @property
    def text(self) -> str:
        """What is wrong, in the active language. May contain any character: it has names and messages of errors."""
        shown: dict[str, Any] = {"number": self.values.get("count", 1)}  # chooses between singular and plural
        for name, value in self.values.items():
            if isinstance(value, str):
                shown[name] = value
            else:
                shown[name] = format_duration(value) if name in DURATIONS else format_number(value)
        return " ".join(sentence(name, shown) for name in (self.kind, *self.also))

    def since_text(self, now: datetime) -> str:
        """Since when, in the active language and the current time zone; "" if that is unknown."""
        if self.since is None:
            return ""
        duration = format_duration(max(0.0, (now - self.since).total_seconds()))
        if self.began_earlier:
            return _("for more than %(duration)s") % {"duration": duration}
        local = localtime(self.since)
        time = f"{local:%H:%M}" if local.date() == localtime(now).date() else f"{local:%Y-%m-%d %H:%M}"
        return _("since %(time)s (%(duration)s)") % {"time": time, "duration": duration}

    def as_dict(self) -> dict[str, Any]:
        """All but the actions, for JSON. Has the text in the active language."""
        subject = {name: getattr(self, name) for name in _SUBJECT if getattr(self, name) not in ("", None)}
        return {
            "kind": self.kind,
            "severity": str(self.severity),
            "since": self.since.isoformat() if self.since else None,
            "began_earlier": self.began_earlier,
            **subject,
            "values": dict(self.values),
            "text": self.text,
        }

    def dump(self) -> str:
        """All but the actions as JSON, for load()."""
        fields = {name: getattr(self, name) for name in _STORED}
        return json.dumps({**fields, "since": self.since.timestamp() if self.since else None})

    @classmethod
    def load(cls, text: str) -> Incident:
        """From what dump() made, also that of another version of this package."""
        stored = {name: value for name, value in json.loads(text).items() if name in _STORED}
        since = stored.pop("since", None)
        return cls(
            **{
                **stored,
                "severity": Severity(stored["severity"]),
                "also": tuple(stored.get("also", ())),
                "since": None if since is None else datetime.fromtimestamp(since, timezone.utc),
            }
        )


_SUBJECT = ("queue", "task", "client", "host", "workflow", "shard", "error_class", "job_id", "command")
_STORED = ("kind", "severity", "since", "began_earlier", *_SUBJECT, "values", "also")
