"""Whose turn it is: the order of clients in the rings, one after the other or by virtual time."""

from collections.abc import Sequence

from tests.protocol.model.state import Lane, Part, values_of


class Turns(Part):
    """With weights, or where clients share time, `turns` has their turns. Newcomers have none until the next claim."""

    @property
    def are_virtual(self) -> bool:
        return bool(self.queue.weights) or self.queue.spent.has_times

    def whose_turn(self) -> Lane | None:
        """The highest band, and who comes first in its ring. Who has no work leaves it. Who stands aside keeps it."""
        for band in sorted(self.queue.bands, reverse=True):
            self._place_newcomers(band)
            while (client := self._first_of(band)) is not None:
                if self.queue.spent.charge_late(client):
                    continue
                lane = band, client
                self.queue.paused_tasks.pass_over(lane)
                if self.queue.lanes[lane] and self.queue.caps.room_of(client) > 0:
                    return lane
                self.queue.rings[band].remove(client)
                if self.queue.lanes[lane]:
                    self.queue.caps.block(band, client)
            if not self.queue.rings[band]:
                self.queue.bands.discard(band)
            self.drop_debts()
            if not self.queue.bands:
                break
        return None

    def _first_of(self, band: int) -> str | None:
        return next((client for client in self.queue.rings[band] if client not in self.queue.standing_aside), None)

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

    def move_on(self, band: int, client: str) -> None:
        """It has had its turn. By virtual time it stays in the ring, even if it has no more jobs."""
        ring = self.queue.rings[band]
        if self.are_virtual:
            self.queue.turns[band, client] += self._cost_of(band, client) * self.stride_of(client)
            self.sort(band)
            return
        ring.remove(client)
        if self.queue.lanes[band, client]:
            ring.append(client)

    def drop_debts(self) -> None:
        """When no job waits, nobody is behind anybody."""
        if self.are_virtual and not self.queue.waiting:
            self.queue.rings.clear()
            self.queue.bands.clear()

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
            placed = self._placed(band)
            end = self._first_turn(band) + len(placed)
            beyond = [client for client in placed if self.queue.turns[band, client] > end]
            for client, turn in self._seats(band, beyond).items():
                self.queue.turns[band, client] = min(self.queue.turns[band, client], turn)
            self.sort(band)

    def _place_newcomers(self, band: int) -> None:
        if self.are_virtual:
            newcomers = [client for client in self.queue.rings[band] if (band, client) not in self.queue.turns]
            first = self._first_turn(band)
            for client, turn in self._seats(band, newcomers).items():
                self.queue.turns[band, client] = self.queue.spent.start_level(client, turn, first)
            self.sort(band)

    def _seats(self, band: int, clients: Sequence[str]) -> dict[str, float]:
        """Their turns if they came now: behind the first one by what their running jobs and one more cost."""
        first, apart = self._first_turn(band), 0.001 if self.queue.spent.has_times else 1
        return {
            client: first
            + ((self.queue.spent.running(client) + 1) * self._cost_of(band, client) + place * apart)
            * self.stride_of(client)
            for place, client in enumerate(clients)
        }

    def _cost_of(self, band: int, client: str) -> float:
        """How far a job moves a client on whose stride is 1."""
        return self.queue.spent.known(client).estimate if self.queue.spent.has_times else len(self._placed(band))

    def _placed(self, band: int) -> list[str]:
        return [client for client in self.queue.rings[band] if (band, client) in self.queue.turns]

    def _first_turn(self, band: int) -> float:
        placed = self._placed(band)
        return self.queue.turns[band, placed[0]] if placed else self.queue.last_turns.get(band, 0)

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
