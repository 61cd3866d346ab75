"""A session for tests of runners, and runs for it."""

import json

from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import ACKED


class FakeSession:
    """Keeps outcomes."""

    backend = ""

    def __init__(self, shared):
        self.on_release = lambda: None
        self.outcomes, self.settled, self.released, self.forgotten, self._shared = {}, [], [], [], shared

    def add(self, run, outcome):
        self.outcomes[run.job_id] = outcome
        self._shared.finish(run.entry, ACKED, 0)

    def settle(self):
        self.settled.append(list(self.outcomes))

    def report_progress(self, said):
        pass

    def release(self, job_ids):
        self.released += job_ids
        self.on_release()

    def disown(self, job_ids):
        self.forgotten += job_ids


def run_of(name, task="note", *args, crashes=0, max_crashes=3):
    body = json.dumps({"task": f"tests.app.tasks.{task}", "args": [name, *args]})
    record = f"0 {max_crashes} 1 0 \n{body}".encode()
    return Run("default", name.encode(), record, worker="w1", now_ms=1, counts=(0, crashes))
