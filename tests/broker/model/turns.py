"""Whose turn it is: the order of clients in the rings, one after the other or by their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.model.state import Lane, values_of

if TYPE_CHECKING:
    from tests.broker.model.queue import Queue


class Turns:
    """Newcomers have no turn until the next claim."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def whose_turn(self) -> Lane | None:
        """The highest band, and who comes first in its ring. Who has no work leaves it. Who stands aside keeps it."""
        passed: set[int] = set()
        while bands := self.queue.bands - passed:
            band = max(bands)
            self.place_newcomers(band)
            for client in self.in_turn(band):
                if client in self.queue.standing_aside:
                    passed.add(band)
                    continue
                self.queue.paused_tasks.pass_over((band, client))
                if self.queue.lanes[band, client] and self.queue.caps.room_of(client) > 0:
                    return band, client
                self.queue.rings[band].remove(client)
                if self.queue.lanes[band, client]:
                    self.queue.caps.block(band, client)
            if self.looks_again():
                passed.discard(band)
            elif band not in passed:
                self.queue.bands.discard(band)
        return None

    def in_turn(self, band: int) -> list[str]:
        """But for those that have given their last job to this claim."""
        return [client for client in self.queue.rings[band] if (band, client) not in self.queue.emptied]

    def looks_again(self) -> bool:
        was_empty, self.queue.emptied = not self.queue.emptied, set()
        return not was_empty

    def enter(self, band: int, client: str) -> None:
        self.queue.turns.pop((band, client), None)
        self.queue.rings[band].append(client)

    def come_first(self, band: int, client: str) -> None:
        """The client did not have the turn that it got."""
        ring = self.queue.rings[band]
        first = self.queue.turns.get((band, ring[0]))
        if client == ring[0]:
            return
        ring.remove(client)
        ring.insert(0, client)
        self.queue.turns.pop((band, client), None)
        if first is not None:
            self.queue.turns[band, client] = first - 1

    def place_newcomers(self, band: int) -> None:
        if self.queue.spent.has_times:
            self.queue.spent.place_by_time(band)
            return
        ring = self.queue.rings[band]
        if not self.queue.weights or not ring:
            return
        first, n = self.queue.turns.get((band, ring[0]), 0), sum((band, client) in self.queue.turns for client in ring)
        for client in ring:
            if (band, client) not in self.queue.turns:
                self.queue.turns[band, client] = first + n * self.stride_of(client)
                n += 1
        self.sort(band)

    def move_on(self, band: int, client: str) -> None:
        """It has had its turn, and has more work."""
        ring = self.queue.rings[band]
        if self.queue.spent.has_times:
            self.queue.spent.move_on_by_time(band, client)
        elif self.queue.weights:
            self.queue.turns[band, client] += len(ring) * self.stride_of(client)
            self.sort(band)
        else:
            ring.remove(client)
            ring.append(client)

    def leave_ring(self, band: int, client: str) -> None:
        """It has no more jobs."""
        if self.queue.spent.has_times:
            self.move_on(band, client)
            self.queue.emptied.add((band, client))
        else:
            self.queue.rings[band].remove(client)

    def keep_turn(self, lane: Lane) -> None:
        """A client is blocked."""
        turn = self.queue.turns.pop(lane, None)
        if self.queue.spent.has_times and turn is not None:
            self.queue.spent.used(lane[1]).turn = self.queue.last_turns[lane[0]] = turn

    def mark_newcomers(self) -> None:
        """With the first weight all come anew, in their order."""
        if not self.queue.is_marked:
            self.queue.is_marked = True
            self.queue.turns.clear()

    def pull_back(self) -> None:
        """Beyond the end of a ring, nobody's turn is later than if it came now."""
        for band in self.queue.bands:
            placed = [client for client in self.queue.rings[band] if (band, client) in self.queue.turns]
            first, n = self.queue.turns[band, placed[0]] if placed else 0, len(placed)
            beyond = [client for client in placed if self.queue.turns[band, client] > first + n]
            for place, client in enumerate(beyond):
                turn = first + (n + place) * self.stride_of(client)
                self.queue.turns[band, client] = min(self.queue.turns[band, client], turn)
            self.sort(band)

    def stride_of(self, client: str) -> float:
        default = self.queue.set_limits.get("clients", "")
        weights = [values_of(text).get("weight", "1") for text in (default, self._texts_of(client))]
        return float(weights[0]) / float(weights[1])

    def _texts_of(self, client: str) -> str:
        return f"{self.queue.set_limits.get(f'client:{client}', '')} {self.queue.set_limits.get('clients', '')}"

    def sort(self, band: int) -> None:
        """By turns, then by names; those who have none yet stay the last."""
        last = float("inf")
        order = {client: place for place, client in enumerate(self.queue.rings[band])}
        self.queue.rings[band].sort(
            key=lambda client: (
                (self.queue.turns[band, client], client.encode())
                if (band, client) in self.queue.turns
                else (last, order[client].to_bytes(4, "big"))
            )
        )
