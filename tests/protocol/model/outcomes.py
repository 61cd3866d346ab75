"""What is kept of jobs that are over: their ids, outcomes and lines."""

import re
from collections.abc import Iterable, Sequence

from tests.protocol.model.state import Entry, Part, due_at, in_order

DROPPED_AT_ONCE = 1000  # outcomes that are too many
PERIOD_MS = 120_000  # an id is known at least so long after the end of its job
READ_AT_ONCE = 100  # outcomes that trim reads
LINE = '[1,2,"INFO","shop","said"]'  # that a job logs
LIVE_MS, KEPT_LOGS, KEPT_LINES = 7_776_000_000, 2, 200


class Outcomes(Part):
    """Nothing of this grows for ever."""

    def remember(self, outcomes: Sequence[Entry]) -> None:
        for job_id, keep_ms, outcome in outcomes:
            self.queue.finished.add(job_id)
            if outcome:
                self.queue.results[job_id] = f"{self.queue.clock.now} {keep_ms} {outcome}"
                self.queue.recent_results.append(job_id)
            else:
                self.queue.no_outcome.append(job_id)
        over, most = len(self.queue.results) - self.queue.limits.max_results, self.queue.limits.max_results
        if over > 0 and any(outcome for _, _, outcome in outcomes):
            self._drop_outcomes(min(over + most // 100, DROPPED_AT_ONCE))

    def _drop_outcomes(self, count: int) -> None:
        """Those that finished first: nothing is as old as what trim has moved."""
        old = in_order(self.queue.result_times)[:count]
        recent = self.queue.recent_results[: count - len(old)]
        del self.queue.recent_results[: len(recent)]
        self._delete_outcomes([*old, *recent])

    def _delete_outcomes(self, job_ids: Iterable[str]) -> int:
        """How many there were."""
        deleted = [self.queue.results.pop(job_id, None) for job_id in dict.fromkeys(job_ids)]
        for job_id in self.queue.result_times.keys() - self.queue.results.keys():
            del self.queue.result_times[job_id], self.queue.result_expiry[job_id]
        return len(deleted) - deleted.count(None)

    def times_of(self, job_id: str) -> tuple[int, int]:
        """When a job finished, and until when its outcome is kept; zeros if that cannot be read."""
        found = re.match(r"(\d+) (\d+) ", self.queue.results.get(job_id, ""))
        return (int(found[1]), int(found[1]) + int(found[2])) if found else (0, 0)

    def expire_outcomes(self) -> tuple[int, bool]:
        """How many outcomes went, and whether there may be more to do."""
        gone, read = due_at(self.queue.result_expiry, self.queue.clock.now)[:DROPPED_AT_ONCE], 0
        is_cut = len(gone) == DROPPED_AT_ONCE
        for job_id in self.queue.recent_results[:READ_AT_ONCE]:
            ended, until = self.times_of(job_id)
            if self.queue.clock.now - PERIOD_MS < ended <= self.queue.clock.now:
                break
            read += 1
            if until > self.queue.clock.now:
                self.queue.result_times[job_id], self.queue.result_expiry[job_id] = ended, until
            else:
                gone.append(job_id)
        del self.queue.recent_results[:read]
        return self._delete_outcomes(gone), is_cut or read == READ_AT_ONCE

    def rotate(self) -> None:
        """Ids of jobs that finished long ago go."""
        age = self.queue.clock.now - self.queue.clock_state.get("rotated", float("inf"))
        if 0 <= age < PERIOD_MS:
            return
        self.queue.clock_state["rotated"] = self.queue.clock.now
        if age < 0:
            return
        self.queue.finished_before, self.queue.finished = self.queue.finished, set()
        self.queue.no_outcome_before, self.queue.no_outcome = self.queue.no_outcome, []

    def has_finished(self, job_id: str) -> bool:
        """Whether it finished lately."""
        return job_id in self.queue.finished or job_id in self.queue.finished_before

    def append_log(self, worker: str, job_id: str, part: str, over_ms: int | str, lines: Sequence[str]) -> None:
        if job_id not in self.queue.running[worker]:
            return
        log, (token, number) = self.queue.logs.get(job_id, []), part.split("-")
        last_token, last_number = log[-1].split(" ")[0].split("-") if log else ("", "0")
        is_known = token == last_token and int(last_number) >= int(number)
        if lines and not is_known:
            log = self.queue.logs[job_id] = [*log, *(f"{part} {line}" for line in lines)][-KEPT_LINES:]
        if log and over_ms != "" and not is_known:
            self.queue.logged.append(job_id)
            self.delete_logs(self.queue.logged[:-KEPT_LOGS])
            self.queue.logged = self.queue.logged[-KEPT_LOGS:]

    def delete_logs(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            self.queue.logs.pop(job_id, None)
