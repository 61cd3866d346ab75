"""The system check of tables."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

from django.core.checks import CheckMessage, Warning
from django.db import Error as DatabaseFailure
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from django_rtq.core.tasks.registry import all_tasks
from django_rtq.core.transactions import outbox_database
from django_rtq.exceptions import ConfigurationError


def check_tables(databases: Collection[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """rtq.W005: tables for the outbox or exactly_once are missing. For `check --database`."""
    if sys.argv[1:2] == ["migrate"]:  # it checks before it does what we would ask for
        return []
    try:
        needed = {outbox_database() or "", *(str(task.exactly_once) for task in all_tasks().values())}
    except ConfigurationError:
        return []  # reported as rtq.E001
    problems: list[CheckMessage] = []
    for alias in sorted(needed.intersection(databases or ())):
        try:
            executor = MigrationExecutor(connections[alias])
            leaves = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "django_rtq"]
            is_missing = bool(executor.migration_plan(leaves))
        except DatabaseFailure:
            continue  # it cannot be reached: migrate says so
        if is_missing:
            problems.append(
                Warning(
                    f"Migrations of django_rtq were not applied to the database {alias!r}, which "
                    'RTQ["OUTBOX"] or a task with exactly_once uses: its jobs fail until they are.',
                    hint=f"Run: manage.py migrate django_rtq --database {alias}",
                    id="rtq.W005",
                )
            )
    return problems
