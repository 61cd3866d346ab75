"""What incidents say, in the language of the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext, gettext_lazy, ngettext_lazy

from django_rtq.inspector.server_info import PROBLEMS

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
    "worker_lost": ngettext_lazy(
        "Host %(host)s: %(count)s worker has stopped responding (%(worker)s). Its jobs will be reclaimed shortly.",
        "Host %(host)s: %(count)s workers have stopped responding, %(worker)s among them. Their jobs will be reclaimed "
        "shortly.",
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
    "busy_client": gettext_lazy(
        "Queue %(name)s: client %(client)s took %(share)s %% of the work of the last hour, and others wait. The oldest "
        "job has been waiting for %(duration)s."
    ),
    "no_scheduler": gettext_lazy(
        "Queue %(name)s: no scheduler is running, so its scheduled jobs and retries do not start. Were all workers "
        "started with --no-scheduler?"
    ),
    "queue_paused": gettext_lazy("Queue %(name)s is paused."),
    "task_paused": ngettext_lazy(
        "Task %(task)s is paused in %(queues)s, and holds %(count)s job.",
        "Task %(task)s is paused in %(queues)s, and holds %(count)s jobs.",
        "number",
    ),
    "outbox_lag": ngettext_lazy(
        "%(count)s job waits in the outbox, for %(duration)s. Is a worker or scheduler running with this database, and "
        "does its log name an error?",
        "%(count)s jobs wait in the outbox, the oldest for %(duration)s. Is a worker or scheduler running with this "
        "database, and does its log name an error?",
        "number",
    ),
    "outbox_unknown": gettext_lazy("The database did not say how many jobs wait in the outbox: %(error)s"),
    "clock_behind": gettext_lazy(
        "The clock of the Redis server was set back and is %(duration)s behind. Until it has caught up, time passes 10 "
        "percent more slowly for jobs."
    ),
    # Beside the sentence of a kind
    "new_version": gettext_lazy("It began after the start of version %(version)s."),
    "newest_error": gettext_lazy("Latest error: %(error)s."),
    "newest_failure": gettext_lazy("Latest: %(task)s, %(error)s."),
    "paused_by": gettext_lazy("Paused by %(user)s."),
    "jobs_waiting": gettext_lazy("Waiting: %(waiting)s (clients: %(clients)s)."),
}

_translated = gettext  # of texts that are marked elsewhere


def sentence(name: str, shown: Mapping[str, Any]) -> str:
    """The sentence of a kind of incident, or one of the others."""
    text = TEXTS.get(name)
    return str((_translated(PROBLEMS[name.removeprefix("redis_")]) if text is None else text) % shown)
