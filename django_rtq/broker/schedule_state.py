"""What Redis knows of the schedules of periodic jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django_rtq.broker.wire import as_dict


class ScheduleState(NamedTuple):
    """The value of one name in the hash `schedules`."""

    last_slot_ms: int  # 0: none was fired yet
    last_job: str  # "-": none yet
    definition: str  # its digest, of whoever began to count last
    began_ms: int  # since when slots of that definition count

    @classmethod
    def read(cls, text: bytes) -> ScheduleState:
        """From the text that the scripts write."""
        slot, job, definition, began = text.decode().split(" ")
        return cls(int(slot), job, definition, int(began))


def read_states(flat: Sequence[bytes]) -> dict[str, ScheduleState]:
    """By name, from the answer to HGETALL."""
    return {name.decode(): ScheduleState.read(state) for name, state in as_dict(flat).items()}
