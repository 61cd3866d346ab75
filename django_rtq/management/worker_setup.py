"""What rtq_worker and rtq_scheduler have in common: the queues they are named, and where their log lines go."""

from __future__ import annotations

import logging

from django_rtq.broker.keys import check_queue_name
from django_rtq.exceptions import InvalidTask


def queue_names(text: str) -> list[str]:
    """The names of a list with commas, each once. Raises InvalidTask."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidTask("--queues names no queue.")
    for name in names:
        check_queue_name(name)
    return list(dict.fromkeys(names))


def show_logs(verbosity: int) -> None:
    """Where a project says nothing of our logger, people are told what happens all the same."""
    logger = logging.getLogger("django_rtq")
    if verbosity == 0 or logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
