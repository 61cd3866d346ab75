"""The former names of tasks, which the records of jobs may have."""

from __future__ import annotations

from collections.abc import Callable

#: Other name -> name of the registered task.
ALIASES: dict[str, str] = {}


def names_of(task: str) -> list[str]:
    """The names that jobs of a task may have, its own first."""
    return [task, *other_names(lambda name: name == task)]


def other_names(is_meant: Callable[[str], bool]) -> list[str]:
    """The other names of the registered tasks whose names are meant."""
    return [alias for alias, name in ALIASES.items() if is_meant(name)]
