"""The time that the jobs of clients used: fair_by="seconds"."""

import re
from collections.abc import Iterable, Sequence

from tests.protocol.model.state import Part, values_of
from tests.protocol.model.used import FIRST_MS, Used

DEBT_MS = 3_600_000
_ENTRY = re.compile(r"\d+ (\d+):?(\S*) (.*)", re.DOTALL)


class Times(Part):
    """What clients used of the time of workers."""

    @property
    def has_times(self) -> bool:
        return values_of(self.queue.set_limits.get("queue", "")).get("fair_by") == "seconds"

    def change_times(self, *, was_timed: bool, has_new_weights: bool) -> None:
        """After a change of limits."""
        if self.has_times:
            self.queue.order.mark_newcomers()
        else:
            self.queue.used, self.queue.mean, self.queue.last_turns = {}, None, {}
        if self.has_times != was_timed or (self.has_times and has_new_weights):
            self.queue.turns.clear()
        elif has_new_weights:
            self.queue.order.pull_back()

    def recount(self) -> None:
        """After a change of limits, or a torn log."""
        if not self.has_times:
            return
        claims: dict[str, list[int]] = {}
        for entry in (entry for held in self.queue.running.values() for entry in held.values()):
            if found := _ENTRY.fullmatch(entry):
                claims.setdefault(found[3], []).append(int(found[1]))
        for client, times in claims.items():
            used = self.used(client)
            is_new, charged = used.running == 0, used.charged
            used.running = used.starts = 0
            for claimed_at in times:
                used.start(1, max(claimed_at, used.since))
            used.charged = charged
            if is_new:
                used.begin_anew(self.queue.clock.now)
        for client in self.queue.used.keys() - claims.keys() - self.queue.blocked.keys():
            del self.queue.used[client]

    def start_level(self, client: str, turn: float, first: float) -> float:
        """A client gets a turn; that which it kept, if it was blocked. Else its running jobs count from now on."""
        used = self.known(client)
        if used.turn is not None:
            turn = max(turn, min(used.turn, first + DEBT_MS))
        elif used.running:
            used.begin_anew(self.queue.clock.now)
        if used.running or used.turn is not None:
            used.turn, self.queue.used[client] = None, used
        return turn

    def charge_late(self, client: str) -> bool:
        """The first client of a ring, if its running jobs take longer than was thought."""
        used, now = self.known(client), self.queue.clock.now
        is_late = used.charge(now) >= used.charged + 1
        if is_late:
            self._charge(client, 0)
        return is_late

    def _charge(self, client: str, spent: float) -> bool:
        """Charge a client for its running jobs, and for others that have ended. Returns whether it is in any ring."""
        used, charge = self.used(client), self.known(client).charge(self.queue.clock.now)
        ms, used.charged = (spent + charge - used.charged) * self.queue.order.stride_of(client), charge
        if used.turn is not None:
            used.turn += ms
        for band in self.queue.bands:
            if (band, client) in self.queue.turns and client in self.queue.rings[band]:
                self.queue.turns[band, client] += ms
                self.queue.order.sort(band)
        is_there = any(client in (*self.queue.rings[band], *self.queue.blocked_in[band]) for band in self.queue.bands)
        return is_there or used.turn is not None

    def charge_start(self, client: str) -> None:
        if self.has_times:
            self.used(client).start(1, self.queue.clock.now)

    def charge_ended(self, entries: Sequence[str], *, are_unrun: bool) -> None:
        if not self.queue.job_times():
            return
        now, mean = self.queue.clock.now, FIRST_MS if self.queue.mean is None else self.queue.mean
        found = [match for entry in entries if (match := _ENTRY.fullmatch(entry))]
        spent = {match[3]: 0.0 for match in found}
        ended = {client: self.used(client) for client in spent}
        for match in found:
            used, claimed_at = ended[match[3]], int(match[1])
            since = max(claimed_at, used.since)
            ran = 0.0 if are_unrun else min(float(match[2] or "inf"), now - claimed_at)
            used.running, used.starts = max(0, used.running - 1), used.starts - since
            spent[match[3]] += min(ran, now - since)
            if not are_unrun and match[2] != "0":
                used.mean += (ran - used.mean) / 4
                mean += (ran - mean) / 16
        self.queue.mean = mean
        for client, used in ended.items():
            if not (self._charge(client, spent[client]) or used.running):
                del self.queue.used[client]

    def note_times(self, worker: str, noted: Iterable[tuple[str, str]]) -> None:
        for job_id, ms in noted:
            if found := _ENTRY.fullmatch(self.queue.running[worker].get(job_id, "")):
                attempt = self.queue.running[worker][job_id].split(" ")[0]
                self.queue.running[worker][job_id] = f"{attempt} {found[1]}:{ms} {found[3]}"

    def note_unrun(self, worker: str, job_ids: Iterable[str]) -> None:
        if self.queue.job_times():
            self.note_times(worker, [(job_id, "0") for job_id in job_ids])

    def running(self, client: str) -> int:
        return self.queue.used[client].running if client in self.queue.used else 0

    def known(self, client: str) -> Used:
        return self.queue.used.get(client) or Used(FIRST_MS if self.queue.mean is None else self.queue.mean)

    def used(self, client: str) -> Used:
        return self.queue.used.setdefault(client, self.known(client))
