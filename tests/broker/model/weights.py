"""Weights of the model: turns of clients whose jobs move them on by more, or less, than those of others."""

from __future__ import annotations

from tests.broker.model.unique import Holdings


class Weights(Holdings):
    """One queue, and the turns of its clients while any has a weight. Newcomers have none until the next claim."""

    def _enter(self, band: int, client: str) -> None:
        self.turns.pop((band, client), None)
        self.rings[band].append(client)

    def _come_first(self, band: int, client: str) -> None:
        """The client did not have the turn that it got."""
        ring = self.rings[band]
        first = self.turns.get((band, ring[0]))
        if client == ring[0]:
            return
        ring.remove(client)
        ring.insert(0, client)
        self.turns.pop((band, client), None)
        if first is not None:
            self.turns[band, client] = first - 1

    def place_newcomers(self, band: int) -> None:
        ring = self.rings[band]
        if not self.weights or not ring:
            return
        first, n = self.turns.get((band, ring[0]), 0), sum((band, client) in self.turns for client in ring)
        for client in ring:
            if (band, client) not in self.turns:
                self.turns[band, client] = first + n * self._stride_of(client)
                n += 1
        self._sort(band)

    def _move_on(self, band: int, client: str) -> None:
        """It has had its turn, and has more work."""
        ring = self.rings[band]
        if self.weights:
            self.turns[band, client] += len(ring) * self._stride_of(client)
            self._sort(band)
        else:
            ring.remove(client)
            ring.append(client)

    def _stride_of(self, client: str) -> float:
        default = self.set_limits.get("clients", "")
        weights = [values_of(text).get("weight", "1") for text in (default, self._texts_of(client))]
        return float(weights[0]) / float(weights[1])

    def _texts_of(self, client: str) -> str:
        return f"{self.set_limits.get(f'client:{client}', '')} {self.set_limits.get('clients', '')}"

    def mark_newcomers(self) -> None:
        """With the first weight all come anew, in their order."""
        if not self.is_marked:
            self.is_marked = True
            self.turns.clear()

    def pull_back(self) -> None:
        """Beyond the end of a ring, nobody's turn is later than if it came now."""
        for band in self.bands:
            placed = [client for client in self.rings[band] if (band, client) in self.turns]
            first, n = self.turns[band, placed[0]] if placed else 0, len(placed)
            beyond = [client for client in placed if self.turns[band, client] > first + n]
            for place, client in enumerate(beyond):
                turn = first + (n + place) * self._stride_of(client)
                self.turns[band, client] = min(self.turns[band, client], turn)
            self._sort(band)

    def _sort(self, band: int) -> None:
        """By turns, then by names; those who have none yet stay the last."""
        last = float("inf")
        order = {client: place for place, client in enumerate(self.rings[band])}
        self.rings[band].sort(
            key=lambda client: (
                (self.turns[band, client], client.encode())
                if (band, client) in self.turns
                else (last, order[client].to_bytes(4, "big"))
            )
        )


def values_of(texts: str) -> dict[str, str]:
    """The first value of each name holds."""
    return dict(pair.split("=") for pair in reversed(texts.split()))
