"""Makes idle waits of a worker or scheduler longer than any test runs. Imported by the process under test.

A process that ends, or goes on, all the same was woken: tests need not measure how long it took.
"""

from django_rtq.core import threads
from django_rtq.core.worker.process import process

process.IDLE_SECONDS = threads.STOP_SECONDS = 300.0
