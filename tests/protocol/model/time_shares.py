"""Workers that need no time: they claim jobs, let the clock of Redis go on, and say how long the jobs ran."""

import heapq
from collections import Counter

from django_rtq.core.broker.settlement import Report, Settlement
from tests.support.jobs import QUEUE, new_job

BEGAN_MS = 1_800_000_000_000


class Workers:
    """A number of workers with one slot each, and jobs whose names are `client ms`."""

    def __init__(self, redis, broker, *, number=1, batch=1):
        self.redis, self.broker, self.batch = redis, broker, batch
        self.now_ms = 0.0
        self.used = Counter()  # ms of workers, by client
        self.at_once = Counter()  # the most jobs that ran at once, by client
        self.held = {}  # worker -> jobs
        self.free = []
        redis.flushdb()
        self._set_clock()
        for place in range(number):
            name = f"worker{place}"
            broker.sign_on([QUEUE], name)
            self.held[name] = []
            heapq.heappush(self.free, (0.0, name))

    def enqueue(self, client, ms, jobs=1):
        for start in range(0, jobs, 1000):  # more at once would get other ids
            part = range(min(1000, jobs - start))
            self.broker.enqueue(QUEUE, [new_job(f"{client} {ms}", client=client) for _ in part])

    def run(self, ms, *, on_end=lambda client, ms: None, verb="ack"):
        """Let so much time pass. `on_end` is called for each job that ends."""
        end = self.now_ms + ms
        while self.free and self.free[0][0] <= end:
            self.now_ms, worker = heapq.heappop(self.free)
            self._set_clock()
            self._turn(worker, on_end, verb)
        self.now_ms = end
        self._set_clock()

    def _turn(self, worker, on_end, verb):
        ended, self.held[worker] = self.held[worker], []
        done = Settlement()
        for job_id in ended:
            client, ms = self._of(job_id)
            done.add_time(job_id, ms / 1000)
            done.add(Report(verb, job_id, 1000, b"" if verb == "ack" else b"{}"))
            self.used[client] += ms
        self.broker.settle(worker, QUEUE, done)
        for job_id in ended:
            on_end(*self._of(job_id))
        found = self.broker.claim(worker, [QUEUE], self.batch)
        self.held[worker] = [job_id for part in found.claimed for job_id in part.ids]
        takes = sum(self._of(job_id)[1] for job_id in self.held[worker]) or 1
        running = Counter(self._of(job_id)[0] for held in self.held.values() for job_id in held[:1])
        for client, number in running.items():
            self.at_once[client] = max(self.at_once[client], number)
        heapq.heappush(self.free, (self.now_ms + takes, worker))

    def _of(self, job_id):
        client, ms = job_id.decode().split("-", 2)[2].split(" ")
        return client, float(ms)

    def _set_clock(self):
        self.redis.set("clock", BEGAN_MS + int(self.now_ms))
