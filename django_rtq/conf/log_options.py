"""What RTQ["JOB_LOGS"] may say: from which level on the lines of jobs are kept."""

from __future__ import annotations

import logging

from django_rtq.exceptions import ConfigurationError


def job_log_level(option: object) -> int | None:
    """The lowest level of lines that are kept; None: none are. Raises ConfigurationError."""
    if option is None or option is False:
        return None
    if option is True:
        return logging.NOTSET
    level = logging.getLevelName(option) if isinstance(option, str) else None
    if not isinstance(level, int):
        raise ConfigurationError(
            f'RTQ["JOB_LOGS"] is {option!r}, but has to be True, False, or the name of a level of logging, like "INFO".'
        )
    return level
