"""Turns of the model by the time that jobs used: fair_by="seconds"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tests.broker.model.state import Lane
from tests.broker.model.used import FIRST_MS, Used
from tests.broker.model.weights import Weights, values_of

DEBT_MS = 3_600_000
_ENTRY = re.compile(r"\d+ (\d+):?(\S*) (.*)", re.DOTALL)


class Times(Weights):
    """One queue, and what its clients used of the time of workers."""

    @property
    def has_times(self) -> bool:
        return values_of(self.set_limits.get("queue", "")).get("fair_by") == "seconds"

    def change_times(self, *, was_timed: bool, has_new_weights: bool) -> None:
        """After a change of limits."""
        if self.has_times:
            self.mark_newcomers()
        else:
            self.used, self.mean, self.last_turns = {}, None, {}
        if self.has_times != was_timed or (self.has_times and has_new_weights):
            self.turns.clear()
        elif has_new_weights:
            self.pull_back()

    def recount(self) -> None:
        """After a change of limits, or a torn log."""
        if not self.has_times:
            return
        claims: dict[str, list[int]] = {}
        for entry in (entry for held in self.running.values() for entry in held.values()):
            if found := _ENTRY.fullmatch(entry):
                claims.setdefault(found[3], []).append(int(found[1]))
        for client, times in claims.items():
            used = self._used(client)
            is_new, charged = used.running == 0, used.charged
            used.running = used.starts = 0
            for claimed_at in times:
                used.start(1, max(claimed_at, used.since))
            used.charged = charged
            if is_new:
                used.begin_anew(self.clock.now)
        for client in self.used.keys() - claims.keys() - self.blocked.keys():
            del self.used[client]

    # -- turns

    def place_newcomers(self, band: int) -> None:
        if not self.has_times:
            super().place_newcomers(band)
            return
        self._charge_running(band)
        ring = self.rings[band]
        newcomers = [client for client in ring if (band, client) not in self.turns]
        first = self.turns[band, ring[0]] if len(newcomers) < len(ring) else self.last_turns.get(band, 0)
        for place, client in enumerate(newcomers, 1):
            used = self._known(client)
            turn = first + (used.running + 1) * used.estimate * self._stride_of(client) + place / 1000
            if used.turn is not None:
                turn = max(turn, min(used.turn, first + DEBT_MS))
            elif used.running:
                used.begin_anew(self.clock.now)
            if used.running or used.turn is not None:
                used.turn, self.used[client] = None, used
            self.turns[band, client] = turn
        self._sort(band)

    def _charge_running(self, band: int) -> None:
        """Those of the first clients that the claim looks at."""
        for _ in range(20):
            placed = [client for client in self.rings[band] if (band, client) in self.turns][: self.wanted]
            late = [
                client
                for client in placed
                if self._known(client).charge(self.clock.now) >= self._known(client).charged + 1
            ]
            for client in late:
                used = self._used(client)
                charge = used.charge(self.clock.now)
                self._move_turns(client, (charge - used.charged) * self._stride_of(client))
                used.charged = charge
            if not late:
                return

    def _is_late(self, used: Used) -> bool:
        return used.charge(self.clock.now) >= used.charged + 1

    def _move_on(self, band: int, client: str) -> None:
        if not self.has_times:
            super()._move_on(band, client)
            return
        self.turns[band, client] += self._stride_of(client) * self._known(client).estimate
        self._sort(band)

    def _move_turns(self, client: str, ms: float) -> bool:
        if client in self.used and self.used[client].turn is not None:
            self.used[client].turn += ms  # type: ignore[operator]
        for band in self.bands:
            if (band, client) in self.turns and client in self.rings[band]:
                self.turns[band, client] += ms
                self._sort(band)
        return any(client in self.rings[band] or client in self.blocked_in[band] for band in self.bands)

    def in_turn(self, band: int) -> list[str]:
        """But for those that have given their last job to this claim."""
        return [client for client in self.rings[band] if (band, client) not in self.emptied]

    def looks_again(self) -> bool:
        was_empty, self.emptied = not self.emptied, set()
        return not was_empty

    def leave_ring(self, band: int, client: str) -> None:
        """It has no more jobs."""
        if self.has_times:
            self._move_on(band, client)
            self.emptied.add((band, client))
        else:
            self.rings[band].remove(client)

    def keep_turn(self, lane: Lane) -> None:
        """A client is blocked."""
        turn = self.turns.pop(lane, None)
        if self.has_times and turn is not None:
            self._used(lane[1]).turn = self.last_turns[lane[0]] = turn

    def drop_debts(self) -> None:
        """When no job waits, nobody is behind anybody."""
        if self.has_times and not self.waiting:
            self.rings.clear()
            self.bands.clear()

    # -- jobs

    def charge_start(self, client: str) -> None:
        if self.has_times:
            self._used(client).start(1, self.clock.now)

    def charge_ended(self, entries: Sequence[str], *, are_unrun: bool) -> None:
        if not self.job_times():
            return
        now, mean = self.clock.now, FIRST_MS if self.mean is None else self.mean
        found = [match for entry in entries if (match := _ENTRY.fullmatch(entry))]
        spent = {match[3]: 0.0 for match in found}
        ended = {client: self._used(client) for client in spent}
        for match in found:
            used, claimed_at = ended[match[3]], int(match[1])
            since = max(claimed_at, used.since)
            ran = 0.0 if are_unrun else min(float(match[2] or "inf"), now - claimed_at)
            used.running, used.starts = max(0, used.running - 1), used.starts - since
            spent[match[3]] += min(ran, now - since)
            if not are_unrun and match[2] != "0":
                used.mean += (ran - used.mean) / 4
                mean += (ran - mean) / 16
        self.mean = mean
        for client, used in ended.items():
            charge = used.charge(now)
            is_there = self._move_turns(client, (spent[client] + charge - used.charged) * self._stride_of(client))
            used.charged = charge
            if not (used.running or is_there or used.turn is not None):
                del self.used[client]

    def note_times(self, worker: str, noted: Iterable[tuple[str, str]]) -> None:
        for job_id, ms in noted:
            if found := _ENTRY.fullmatch(self.running[worker].get(job_id, "")):
                attempt = self.running[worker][job_id].split(" ")[0]
                self.running[worker][job_id] = f"{attempt} {found[1]}:{ms} {found[3]}"

    def note_unrun(self, worker: str, job_ids: Iterable[str]) -> None:
        if self.job_times():
            self.note_times(worker, [(job_id, "0") for job_id in job_ids])

    def _known(self, client: str) -> Used:
        return self.used.get(client) or Used(FIRST_MS if self.mean is None else self.mean)

    def _used(self, client: str) -> Used:
        return self.used.setdefault(client, self._known(client))
