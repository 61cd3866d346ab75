"""The part of the model that takes jobs in."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from django_rtq.broker.messages import NewJob, UniqueJob, as_unique
from tests.broker.model.dropping import MORE, Dropping, FindPlace


class Enqueuing(Dropping):
    """One queue, and whoever has work to be done."""

    def enqueue(self, jobs: Iterable[NewJob], all_or_none: bool = False, drops: bool = False) -> list[str]:
        answers, jobs = [], list(jobs)
        if drops:
            return self.enqueue_unique(map(as_unique, jobs), all_or_none, drops)
        before = copy.deepcopy(self.__dict__)
        self.is_bulk = len(jobs) != 1 or bool(jobs[0].due)
        for job in jobs:
            answers.append("exists" if self._knows(job.id) else self.refusal(job.client) or "ok")
            if answers[-1] == "ok":
                self._take_in(job)
        if "ok" in answers:
            self._count("enqueued", answers.count("ok"))
        self.is_bulk = False
        return self._all_or_none(jobs, answers, before) if all_or_none else answers

    def enqueue_unique(self, jobs: Iterable[UniqueJob], all_or_none: bool = False, drops: bool = False) -> list[str]:
        jobs, before = list(jobs), copy.deepcopy(self.__dict__)
        self.drops_left, self.dropped = MORE + len(jobs), []
        if drops and all_or_none:
            answers, clients = self.refusal_of_all(jobs)
            if any(answer.startswith("full") for answer in answers):
                return self._all_or_none(jobs, answers, before)
            for place, client in enumerate(clients):
                self.make_room(client, clients[:place])
            return [self.enqueue_one(job, lambda client: "") for job in jobs]
        answers = [self.enqueue_one(job, self.make_room if drops else self.refusal) for job in jobs]
        return self._all_or_none(jobs, answers, before) if all_or_none else answers

    def _all_or_none(self, jobs: Sequence[NewJob | UniqueJob], answers: list[str], before: dict[str, Any]) -> list[str]:
        """Nothing has happened if one did not fit."""
        if not any(answer.startswith("full") for answer in answers):
            return answers
        before["clock"] = self.clock
        vars(self).update(before)
        added = [
            answer == "ok" or (answer.startswith("after") and job.id not in self.jobs)
            for job, answer in zip(jobs, answers, strict=True)
        ]
        return ["full" if is_added else answer for is_added, answer in zip(added, answers, strict=True)]

    def enqueue_one(self, job: UniqueJob, find_place: FindPlace) -> str:
        first = self._holder(job.digest)
        if first and self._successor_of(first) == job.id:
            return f"after {first}"
        if self._knows(job.id):
            return "exists"
        is_after = bool(first) and job.on_conflict == "rerun" and self._runs(first) and not self._successor_of(first)
        if (not first or is_after) and (refusal := find_place(job.client)):
            return refusal
        if not first:
            self._take_in(job)
            self._hold(job)
            self._count("enqueued")
            return "ok"
        if job.on_conflict == "replace" and not self._runs(first):
            self._replace(first, job)
        if job.on_conflict == "rerun" and (successor := self._successor_of(first)):
            self._move(successor, self._record(job), self.scheduled[successor])
        elif job.on_conflict == "rerun" and self._runs(first):
            self._come_after(first, job)
            return f"after {first}"
        return f"duplicate {first}"
