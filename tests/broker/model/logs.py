"""The lines that jobs log, in the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.broker.model.holding import Holding

LIVE_MS, KEPT_LOGS, KEPT_LINES = 7_776_000_000, 2, 200


class Logs(Holding):
    """One queue, and the lines of its jobs."""

    def append_log(self, worker: str, job_id: str, part: str, over_ms: int | str, lines: Sequence[str]) -> None:
        if job_id not in self.running[worker]:
            return
        log, (token, number) = self.logs.get(job_id, []), part.split("-")
        last_token, last_number = log[-1].split(" ")[0].split("-") if log else ("", "0")
        is_known = token == last_token and int(last_number) >= int(number)
        if lines and not is_known:
            log = self.logs[job_id] = [*log, *(f"{part} {line}" for line in lines)][-KEPT_LINES:]
        if log and over_ms != "" and not is_known:
            self.logged.append(job_id)
            self.delete_logs(self.logged[:-KEPT_LOGS])
            self.logged = self.logged[-KEPT_LOGS:]

    def delete_logs(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            self.logs.pop(job_id, None)
