"""Backends of other packages in place of the two that Django's tests are written for, for the table in the docs.

Each has `results`, all jobs that wait, and `clear()`, like Django's DummyBackend; the draining one runs a job at once,
with the worker of its package in this process, and reads its result. Only the packages that are installed are there.
"""

import os
from contextlib import suppress

from asgiref.sync import sync_to_async

with suppress(ImportError):
    from django_tasks_db.backend import DatabaseBackend

    class DjangoTasksDbCollectingBackend(DatabaseBackend):
        """Jobs of django-tasks-db."""

        @property
        def results(self):
            from django_tasks_db.models import DBTaskResult

            return [row.task_result for row in DBTaskResult.objects.order_by("enqueued_at")]

        def clear(self):
            from django_tasks_db.models import DBTaskResult

            DBTaskResult.objects.all().delete()

    class DjangoTasksDbDrainingBackend(DatabaseBackend):
        """The worker of db_worker --batch."""

        def enqueue(self, task, args, kwargs):
            from django_tasks_db.management.commands.db_worker import Worker

            result = super().enqueue(task, args, kwargs)
            Worker(
                queue_names=["*"],
                interval=0,
                batch=True,
                backend_name=self.alias,
                startup_delay=False,
                max_tasks=None,
                worker_id="draining",
                excluded_queue_names=[],
            ).run()
            return self.get_result(result.id)

        async def aenqueue(self, task, args, kwargs):
            return await sync_to_async(self.enqueue)(task, args, kwargs)


with suppress(ImportError):
    from django_ox.backend import OxBackend

    class DjangoOxCollectingBackend(OxBackend):
        """Jobs of django-ox. A failure is final, as Django's tests expect."""

        def __init__(self, alias, params):
            super().__init__(alias, params)
            self._max_attempts_option = 1

        @property
        def results(self):
            from django_ox.models import OxTask

            return [self.get_result(str(row.pk)) for row in OxTask.objects.order_by("pk")]

        def clear(self):
            from django_ox.models import OxTask

            OxTask.objects.all().delete()

    class DjangoOxDrainingBackend(DjangoOxCollectingBackend):
        """run_tasks() of its module for tests: its worker, in the calling thread."""

        def enqueue(self, task, args, kwargs):
            from django_ox.testing import run_tasks

            result = super().enqueue(task, args, kwargs)
            run_tasks(backend=self.alias)
            return self.get_result(result.id)


with suppress(ImportError):
    from django_tasks_redis.backends import RedisTaskBackend, get_redis_client

    class DjangoTasksRedisCollectingBackend(RedisTaskBackend):
        """Jobs of django-tasks-redis."""

        def get_client(self):
            self._client = self._client or get_redis_client({"REDIS_URL": os.environ["RTQ_REDIS_URL"]})
            return self._client

        @property
        def results(self):
            jobs = sorted(self.iter_task_data(), key=lambda job: job[1]["enqueued_at"])
            return [self.get_result(job_id) for job_id, _ in jobs]

        def clear(self):
            import redis

            with redis.Redis.from_url(os.environ["RTQ_REDIS_URL"]) as client:
                client.flushdb()

    class DjangoTasksRedisDrainingBackend(DjangoTasksRedisCollectingBackend):
        """process_tasks() of its executor."""

        def enqueue(self, task, args, kwargs):
            from django_tasks_redis.executor import process_tasks

            result = super().enqueue(task, args, kwargs)
            process_tasks(queue_name=task.queue_name, backend_name=self.alias)
            return self.get_result(result.id)
