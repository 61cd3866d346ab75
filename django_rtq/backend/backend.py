"""RTQBackend: enqueues tasks of django.tasks, and reads their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import timedelta
from functools import partial
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error

from django_rtq.backend.compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    BaseTaskBackend,
    DjangoResult,
    DjangoTask,
    InvalidTask,
    TaskResultDoesNotExist,
    has_receivers,
    task_backends,
    task_enqueued,
)
from django_rtq.backend.results import new_result, plain_arguments, result_of, set_fields
from django_rtq.backend.rtq_task import RTQ_OPTIONS, RTQTask
from django_rtq.backend.running import WorkerTask
from django_rtq.core.broker.task_backends import REDIS_OPTIONS, connection_settings_of
from django_rtq.core.conf.config import get_config
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import made_at
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.task import USING_NAMES, Task, on_backend
from django_rtq.core.validation import did_you_mean
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import ConfigurationError, JobNotFound, TaskNotFound
from django_rtq.exceptions import InvalidTask as InvalidRTQTask

#: Tasks written for django.tasks expect that a failure is final: it knows no retries.
_DEFAULTS = {"max_attempts": 1}
_OPTIONS = (*RTQ_OPTIONS, *REDIS_OPTIONS)


class RTQBackend(BaseTaskBackend):
    """A backend of django.tasks.

    OPTIONS: REDIS, DB and PREFIX, if its jobs are in another Redis than those of RTQ, and defaults for the options of
    its tasks, see RTQ_OPTIONS.
    """

    task_class = RTQTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def validate_task(self, task: DjangoTask) -> None:
        """Raises InvalidTask. Does not connect to Redis: it runs when a module with tasks is imported."""
        run_after: Any = task.run_after
        if isinstance(run_after, int | float | timedelta) and not isinstance(run_after, bool):
            delay = run_after if isinstance(run_after, timedelta) else timedelta(seconds=run_after)
            object.__setattr__(task, "run_after", utc_now() + delay)
        super().validate_task(task)
        if problems := self._problems():
            raise InvalidTask(problems[0])

    def rtq_task_of(self, task: RTQTask) -> Task[Any, Any]:
        """The task that workers run for it. Registers it when it is declared, not for copies. Raises InvalidTask."""
        of_task: dict[str, Any] = {
            "queue_name": task.queue_name,
            "priority": task.priority,
            "run_after": task.run_after,
        }
        defaults = {name: value for name, value in self.options.items() if name not in REDIS_OPTIONS}
        options: dict[str, Any] = _DEFAULTS | defaults | task.rtq_options
        known = registry.find_task(task.module_path)
        try:
            declaration: Any = known.django_task if isinstance(known, WorkerTask) else known
            if known is not None and task.func is declaration.func:
                wanted = of_task | (options if isinstance(known, WorkerTask) else task.rtq_options)
                changed = _changes(known, task, wanted)
                copy = known.using(**changed) if changed else known
                return copy if copy.backend == self.alias else on_backend(copy, self.alias)
            declared = WorkerTask(
                func=task.func,
                takes_context=task.takes_context,
                keeps_call=True,
                django_task=task,
                backend=self.alias,
                **{name: value for name, value in (of_task | options).items() if name != "run_after"},
            )
        except InvalidRTQTask as error:
            raise InvalidTask(str(error)) from error
        registry.register(declared)
        return declared if task.run_after is None else declared.using(run_after=task.run_after)

    def enqueue(self, task: DjangoTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> DjangoResult:
        """Enqueue a job. Raises InvalidTask, TypeError for arguments that are not JSON, and what delay() raises."""
        task = self._prepared(task)
        args, kwargs = plain_arguments(args, kwargs)
        handle = task.rtq_task.delay(*args, **kwargs)
        if handle.duplicate:
            return self.get_result(handle.id)
        result = new_result(task, handle.id, args, kwargs)
        if handle.when_sent is not None:
            handle.when_sent.append(partial(self._tell_enqueued, handle, result))
        elif has_receivers():
            self._tell_enqueued(handle, result)
        return result

    async def aenqueue(self, task: DjangoTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> DjangoResult:
        """enqueue() for coroutines."""
        task = self._prepared(task)
        args, kwargs = plain_arguments(args, kwargs)
        handle = await task.rtq_task.adelay(*args, **kwargs)
        if handle.duplicate:
            return await self.aget_result(handle.id)
        result = new_result(task, handle.id, args, kwargs)
        if handle.when_sent is not None:
            handle.when_sent.append(partial(self._tell_enqueued, handle, result))
        elif has_receivers():
            await task_enqueued.asend_robust(type(self), task_result=result)
        return result

    def _prepared(self, task: DjangoTask) -> RTQTask:
        if isinstance(task, RTQTask) and task.__dict__.get("_validated_by") is self:
            return task
        ours = self.adopt(task)
        if ours.__dict__.get("_validated_by") is not self:  # settings may have changed since it was declared
            self.validate_task(ours)
            ours.__dict__["_validated_by"] = self
        return ours

    def _tell_enqueued(self, handle: JobHandle, result: DjangoResult) -> None:
        if handle.duplicate:  # found out after the commit of a transaction
            set_fields(result, id=handle.id, enqueued_at=made_at(handle.id))
        else:
            task_enqueued.send_robust(type(self), task_result=result)

    def adopt(self, task: DjangoTask | Task[Any, Any]) -> RTQTask:
        """A task for this backend: a task of django_rtq, or one that was declared for another backend."""
        if isinstance(task, RTQTask) and task.backend == self.alias:
            return task
        if isinstance(task, Task):
            changed: dict[str, Any] = {name: getattr(task, name) for name in task.changed.intersection(RTQ_OPTIONS)}
            changed["run_after"] = task.run_after  # has no default in Django 6.0
            return RTQTask(
                func=task.func,
                takes_context=task.takes_context,
                backend=self.alias,
                queue_name=task.queue,
                priority=task.priority,
                **changed,
            )
        values: dict[str, Any] = {field.name: getattr(task, field.name) for field in fields(task)}
        return RTQTask(**{**values, "backend": self.alias})

    def get_result(self, result_id: str) -> DjangoResult:
        """The result of a job in one of the queues of this backend. Raises TaskResultDoesNotExist, BrokerError."""
        for queue in self._queues_to_search():
            with suppress(JobNotFound, TaskNotFound):
                return self._result_of(JobHandle(str(result_id), queue, backend=self.alias).refresh())
        raise TaskResultDoesNotExist(result_id)

    async def aget_result(self, result_id: str) -> DjangoResult:
        """get_result() for coroutines."""
        for queue in self._queues_to_search():
            with suppress(JobNotFound, TaskNotFound):
                return self._result_of(await JobHandle(str(result_id), queue, backend=self.alias).arefresh())
        raise TaskResultDoesNotExist(result_id)

    def _queues_to_search(self) -> list[str]:
        return sorted(self.queues) or [get_config().default_queue]

    def _result_of(self, details: JobDetails) -> DjangoResult:
        task = registry.get_task(details.task)
        django_task = task.django_task if isinstance(task, WorkerTask) else self.adopt(task)
        priority = django_task.priority if details.ready_at is None else details.priority
        called: dict[str, Any] = {"queue_name": details.queue, "priority": priority, "backend": self.alias}
        if any(getattr(django_task, name) != value for name, value in called.items()):
            django_task = django_task.using(**called)
        return result_of(django_task, details)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """rtq.E005: OPTIONS or QUEUES of the backend are invalid. rtq.E006: django_rtq is not installed."""
        problems = [*self._problems(), *self._problems_of_redis()]
        messages: list[CheckMessage] = [Error(problem, id="rtq.E005") for problem in problems]
        if not apps.is_installed("django_rtq"):
            messages.append(Error('TASKS uses django_rtq: add "django_rtq" to INSTALLED_APPS.', id="rtq.E006"))
        return messages

    def _problems(self) -> list[str]:
        where = f"TASKS[{self.alias!r}]"
        problems = [
            f'{where}["OPTIONS"] has {name!r}, which is no option of a task.{did_you_mean(name, _OPTIONS)}'
            for name in self.options
            if name not in _OPTIONS
        ]
        return problems + [
            f'{where}["QUEUES"] has {name!r}, which is not the name of a queue.'
            for name in self.queues
            if not is_queue_name(name)
        ]

    def _problems_of_redis(self) -> list[str]:
        if not self.options.keys() & set(REDIS_OPTIONS):
            return []
        from django_rtq.core.broker.redis.clients_of_project import caches_in  # with it comes redis-py

        try:
            get_config()
        except ConfigurationError:
            return []  # reported as rtq.E001
        try:
            where = connection_settings_of(self.alias)
        except ConfigurationError as error:
            return [str(error)]
        return [
            f"TASKS[{self.alias!r}] has its jobs in {where}, which the cache {cache!r} uses too. cache.clear() runs "
            "FLUSHDB: it would delete all jobs. Set another database."
            for cache in caches_in(where)[:1]
        ]


def _adopt_declared(found: Any) -> None:
    """Register a task of django.tasks that was declared for any backend of TASKS, when a job of it comes.

    It is of "default" if that is a backend of ours, or else of the first that is.
    """
    if not isinstance(found, DjangoTask):  # type: ignore[misc]
        return
    ours = [backend for backend in task_backends.all() if isinstance(backend, RTQBackend)]
    if ours:
        min(ours, key=lambda backend: backend.alias != DEFAULT_TASK_BACKEND_ALIAS).adopt(found)


registry.adopters.append(_adopt_declared)


def _changes(known: Task[Any, Any], task: RTQTask, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a copy changes. Those that only a declaration may have are compared as they were written."""
    declared = known.django_task.rtq_options if isinstance(known, WorkerTask) else {}
    written = task.rtq_options.items()
    comparable = USING_NAMES - {"backoff"}  # that is not kept as it was written
    changes = {name: value for name, value in written if name not in comparable and value != declared.get(name)}
    return changes | {n: value for n, value in wanted.items() if n in comparable and getattr(known, n) != value}
