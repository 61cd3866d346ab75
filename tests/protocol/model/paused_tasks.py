"""Paused tasks: what a claim meets of their jobs waits in `scheduled`, and is never due."""

import re

from tests.protocol.model.state import Lane, Part, in_order

PAUSE = 10**13  # scores that belong to one pause
HELD = 100 * PAUSE


class PausedTasks(Part):
    """The pauses, and the jobs that these hold."""

    def pause_task(self, task: str, by: str) -> str:
        if " " in self.queue.task_pauses.get(task, ""):
            return "already"
        taken = {int(entry.partition(" ")[0]) for entry in self.queue.task_pauses.values()}
        number = self.queue.task_pauses.get(task) or min(set(range(100, 200)) - taken)
        self.queue.task_pauses[task] = f"{number} {self.queue.clock.now} {by}"
        return "paused"

    def resume_task(self, task: str, limit: int) -> list[str | int]:
        if task not in self.queue.task_pauses:
            return ["already", 0, 0]
        number, _, pause = self.queue.task_pauses[task].partition(" ")
        self.queue.task_pauses[task], self.queue.due_signal = number, True
        returned = self.return_held(task, limit)
        return ["resumed" if pause else "already", returned, int(returned == limit)]

    def pass_over(self, lane: Lane) -> None:
        """What was cancelled, or is of a paused task, leaves the front of a lane; its client keeps its turn."""
        while self.queue.lanes[lane] and (
            (first := self.queue.lanes[lane][0]) not in self.queue.jobs or self.pause_of(first)
        ):
            del self.queue.lanes[lane][0]
            if pause := self.pause_of(first):
                self.set_aside(first, pause)
            else:
                del self.queue.cancelled_in_lane[first]
            if self.queue.lanes[lane]:
                self.queue.waiting[lane] = self.queue.places.waits_since(self.queue.lanes[lane][0])
            else:
                del self.queue.waiting[lane]

    def pause_of(self, job_id: str) -> int:
        """The number of the pause of its task; 0: there is none."""
        task = re.match(r'{"task":"([^"\\]*)"', self.queue.jobs[job_id].body) if job_id in self.queue.jobs else None
        number, _, pause = self.queue.task_pauses.get(task[1] if task else "", "").partition(" ")
        return int(number) if pause else 0

    def set_aside(self, job_id: str, number: int) -> None:
        """It is not due while its task is paused."""
        is_awaited = self.queue.due_signal
        self.queue.places.schedule(job_id, number * PAUSE + self.queue.places.waits_since(job_id))
        self.queue.due_signal = is_awaited
        self.queue.waiting_since.pop(job_id, None)

    def return_held(self, task: str, limit: int) -> int:
        """To the front of their lanes. Returns how many."""
        first = int(self.queue.task_pauses[task]) * PAUSE
        held = [
            job_id for job_id in in_order(self.queue.scheduled) if first <= self.queue.scheduled[job_id] < first + PAUSE
        ]
        for job_id in reversed(held[-limit:]):
            since, lane = int(self.queue.scheduled[job_id] - first), self.queue.jobs[job_id].lane
            self.queue.waiting_since[job_id] = since
            self.queue.places.index(lane, since)
            self.queue.lanes[lane].insert(0, job_id)
            self.queue.waiting[lane] = since
            self.queue.places.unschedule(job_id)
        if len(held) < limit:
            del self.queue.task_pauses[task]
        return len(held[-limit:])

    def return_more(self, limit: int) -> bool:
        """Of the tasks that were resumed. Whether any went back."""
        left = limit
        for task in [task for task, entry in self.queue.task_pauses.items() if " " not in entry]:
            left -= self.return_held(task, left) if left else 0
        return left < limit
