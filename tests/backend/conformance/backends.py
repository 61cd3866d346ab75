"""RTQBackend in place of the two backends that Django's tests are written for."""

from django_rtq.backend import RTQBackend
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.testing import adrain, drain


class CollectingBackend(RTQBackend):
    """In place of the DummyBackend: the jobs wait, and tests look at them."""

    @property
    def results(self):
        """All jobs that wait, the oldest first."""
        readers = readers_of()
        pages = [readers.search([(name, "queued")]).page() for name in readers.queues.names()]
        return [self.get_result(job.id) for page in pages for job in page.jobs]

    def clear(self):
        """Delete all jobs. The server belongs to these tests."""
        get_broker().redis.execute([("FLUSHDB",)])
        get_broker()._registered_queues.clear()


class DrainingBackend(RTQBackend):
    """In place of the ImmediateBackend: a job is enqueued, run as by a worker, and read from Redis."""

    def enqueue(self, task, args, kwargs):
        result = super().enqueue(task, args, kwargs)
        drain(raise_errors=False)
        return self.get_result(result.id)

    async def aenqueue(self, task, args, kwargs):
        result = await super().aenqueue(task, args, kwargs)
        await adrain(raise_errors=False)
        return await self.aget_result(result.id)
