"""Options and methods of Celery, RQ, huey and dramatiq: what to write instead of them, and options of apply_async()."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from typing import Any

from django_rtq.core.handle import JobHandle
from django_rtq.core.tasks.options.types import CeleryOptions
from django_rtq.core.tasks.task import check_names
from django_rtq.core.validation import did_you_mean
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import InvalidTask

_AFTER_FAILURE = "a receiver of the signal job_buried"
_THEN = "Use a workflow: with workflow(…) as flow: flow.add(second, flow.add(first).result)."
_SURVIVES = "Nothing has to be set: a job survives the death of its worker. Not so with max_crashes=0."
_IDS = "Ids are made by delay(). For jobs that must not be doubled, use unique=True."
_SHOWN = "Jobs are shown with the name of their task, and their arguments."
_REDIS = 'All jobs go to RTQ["REDIS"], or to the Redis of a backend in TASKS.'

#: Options with a counterpart.
_RENAMED = {
    **dict.fromkeys(("queue", "routing_key", "exchange"), "queue_name=…"),
    **dict.fromkeys(("countdown", "eta", "delay"), "run_after=…"),
    **dict.fromkeys(("autoretry_for", "retry_when"), "retry_on=…"),
    **dict.fromkeys(("dont_autoretry_for", "throws"), "give_up_on=…"),
    **dict.fromkeys(("max_retries", "retries"), "max_attempts=…"),
    **dict.fromkeys(("default_retry_delay", "retry_delay"), "backoff=…"),
    **dict.fromkeys(("retry_backoff", "retry_backoff_max"), "backoff=exponential(2, cap=600)"),
    **dict.fromkeys(("min_backoff", "max_backoff"), "backoff=exponential(10, cap=600)"),
    "retry_jitter": "backoff=exponential(jitter=…)",
    **dict.fromkeys(("retry_kwargs", "retry_policy"), "max_attempts=…, backoff=…"),
    **dict.fromkeys(("soft_time_limit", "timeout", "job_timeout"), "time_limit=…"),
    **dict.fromkeys(("ttl", "max_age"), "expires=…"),
    "ignore_result": "result_ttl=0",
    "store_results": "result_ttl=…",
    "meta": "headers=…",
    "context": "takes_context=…",
    "actor_name": "name=…",
}
_ALL_RUNS = "It counts all runs: one more than the retries."
_SECONDS = "Times are in seconds."
#: What is different about some of them.
_NOTES = {
    **dict.fromkeys(("max_retries", "retries", "retry_kwargs"), _ALL_RUNS),
    **dict.fromkeys(("delay", "min_backoff", "max_backoff", "max_age"), _SECONDS),
    "retry_policy": "That is for runs that fail: delay() sends once more by itself after a lost connection.",
    "soft_time_limit": "It raises TimeLimitExceeded inside the job, which may catch it.",
}
#: What to do instead of options without a counterpart.
INSTEAD = {
    "bind": "Call current_job(), or use takes_context=True: then the first argument is the job. To retry, raise "
    "Retry(after=60).",
    "base": "Move what the base class does into the function, or into middleware.",
    "rate_limit": 'Set a rate of its queue, which holds for all workers together: RTQ["QUEUES"][…]["rate"].',
    **dict.fromkeys(("acks_late", "reject_on_worker_lost"), _SURVIVES),
    "acks_on_failure_or_timeout": "A job that fails is tried again, as max_attempts says, or is a dead letter.",
    "track_started": "Nothing has to be set: handles and pages tell that a job runs.",
    "store_errors_even_if_ignored": "Dead letters always keep their last errors.",
    "typing": "Arguments are always checked.",
    "link_error": f"Use flow.on_death(…) in a workflow, or {_AFTER_FAILURE}.",
    **dict.fromkeys(("link", "chain", "chord", "add_to_parent", "depends_on"), _THEN),
    **dict.fromkeys(("task_id", "job_id"), _IDS),
    "retry": "delay() sends once more by itself after a lost connection. For runs that fail, use max_attempts=…, "
    "backoff=….",
    "serializer": "Arguments are JSON.",
    "compression": "Arguments are not compressed.",
    **dict.fromkeys(("shadow", "description"), _SHOWN),
    "failure_ttl": 'Use RTQ["DEAD_LETTER_DAYS"], which is for all jobs.',
    "on_success": "Use a receiver of the signal job_succeeded.",
    "on_failure": f"Use {_AFTER_FAILURE}.",
    **dict.fromkeys(("connection", "broker"), _REDIS),
    "repeat": "Use @task(schedule=every(…)).",
}
_NO_SIGNATURES = "There are no signatures: pass the task and its arguments to where delay() is called."
_CALL = "Call the task to run it here: {task}(…)."
_MANY = "Use delay_many([((7,), {{}}), …])."
_HANDLE = "Use the handle that delay() returns, or JobHandle(job_id, queue_name)."
#: Methods and attributes of tasks.
_METHODS = {
    **dict.fromkeys(("s", "si", "signature", "subtask", "message", "message_with_options"), _NO_SIGNATURES),
    **dict.fromkeys(("apply", "run", "call_local"), _CALL),
    **dict.fromkeys(("chunks", "map", "starmap"), _MANY),
    **dict.fromkeys(("AsyncResult", "is_revoked"), _HANDLE),
    **dict.fromkeys(("send", "defer"), "Use delay()."),
    **dict.fromkeys(("send_with_options", "configure"), "Use using(…).delay()."),
    "request": "Call current_job(): it has job_id, attempt, queue_name and more.",
    "retry": "Raise Retry(after=60) in the task.",
    "update_state": "Call report_progress(5, 10) in the task.",
    "max_retries": f"Its option is max_attempts. {_ALL_RUNS}",
    "default_retry_delay": "Its option is backoff.",
    "then": _THEN,
    "revoke": f"To cancel one job: {_HANDLE} To hold back all of them:  manage.py rtq_tasks pause",
    "fn": "Its function is `func`.",
    "actor_name": "Its name is `name`.",
}
_STATE = "Read `state`, such as JobState.SUCCEEDED. It is over when `state.is_final` is true."
_WAIT = "Use get(timeout=…), which waits for the end and returns the result. In coroutines: await aget(timeout=…)."
_FAILURES = "Call refresh(): its `errors` has the last failures."
_CANCEL = "Use cancel(), or cancel(terminate=True) for a job that runs."
#: Methods and attributes of results and jobs.
OF_HANDLES = {
    **dict.fromkeys(("status", "ready", "successful", "failed", "get_status", "is_finished", "is_failed"), _STATE),
    **dict.fromkeys(("is_queued", "is_started", "latest_status"), _STATE),
    **dict.fromkeys(("wait", "join", "collect", "get_result"), _WAIT),
    **dict.fromkeys(("return_value", "result_value"), "Read `result`, or use get(timeout=…) to wait for it."),
    **dict.fromkeys(("traceback", "exc_info", "latest_result"), _FAILURES),
    **dict.fromkeys(("revoke", "abort", "delete", "stop"), _CANCEL),
    **dict.fromkeys(("task_id", "job_id", "get_id", "message_id"), "Its id is `id`."),
    "forget": "Results are deleted by themselves, as result_ttl says.",
    "requeue": "Call rtq.jobs.filter(id=…).requeue(), with rtq of django_rtq.",
}
_DECORATOR = "Import `task`, and write @task."
_SEND = "Import your task, and call its delay()."
#: What other packages are imported from.
IMPORTED = {
    **dict.fromkeys(("job", "shared_task", "actor", "db_task", "db_periodic_task", "periodic_task"), _DECORATOR),
    **dict.fromkeys(("enqueue", "async_task", "send_task"), f"{_SEND} A function is made a task by @task."),
    **dict.fromkeys(("get_queue", "Queue", "Huey"), f"{_SEND} Its queue is an option: @task(queue_name=…)."),
    **dict.fromkeys(("chain", "group", "chord", "signature"), f"Import `workflow`. {_THEN}"),
    **dict.fromkeys(("crontab", "schedule"), "Import `cron` or `every`, and write @task(schedule=cron(…))."),
}


def option_cure(name: str, takes: Set[str], using: Set[str] = frozenset(), task: Set[str] = frozenset()) -> str:
    """A sentence about a refused option. `takes`: what is taken there; `using` and `task`: by using() and @task."""
    ours = _RENAMED.get(name, f"{name}=…" if name in using | task else "")
    first = ours.partition("=")[0]
    note = f" {_NOTES[name]}" if name in _NOTES else ""
    if first in takes:
        return f"Write {ours}.{note}"
    if first in using:
        return f"Use .using({ours}).{note}"
    if first in task:
        return f"Use @task({ours}).{note}"
    return INSTEAD.get(name) or f"{did_you_mean(name, takes)} It takes: {', '.join(sorted(takes))}.".lstrip()


def no_attribute(owner: object, path: str, name: str) -> AttributeError:
    """The error about an attribute that a task, or a handle, does not have."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if cure := (OF_HANDLES if isinstance(owner, JobHandle) else _METHODS).get(name):
        text = f"{path} has no {name}. {cure.format(task=path.rpartition('.')[2])}"
    return AttributeError(text, name=name, obj=owner)


# -- apply_async()

_TAKEN = {"queue": "queue_name", "priority": "priority", "time_limit": "time_limit", "headers": "headers"}


def checked_options(task: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of apply_async() for using(). Raises InvalidTask."""
    check_names(f"{task}: apply_async()", options, CeleryOptions.__optional_keys__)
    given = {name: value for name, value in options.items() if value is not None}
    if "countdown" in given and "eta" in given:
        raise InvalidTask(f"{task}: apply_async() takes countdown or eta, not both.")
    changed: dict[str, Any] = {_TAKEN[name]: value for name, value in given.items() if name in _TAKEN}
    run_after = given.get("countdown", given.get("eta"))
    if run_after is not None:
        changed["run_after"] = run_after
    if "expires" in given:
        changed["expires"] = _expires(given["expires"], is_delayed=run_after is not None)
    return changed


def _expires(value: Any, *, is_delayed: bool) -> Any:
    """Celery counts from now, and we count from the moment when the job is ready."""
    if not is_delayed or isinstance(value, datetime | bool):
        return value
    return utc_now() + (value if isinstance(value, timedelta) else timedelta(seconds=value))
