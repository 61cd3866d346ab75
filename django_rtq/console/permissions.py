"""The permissions of the admin pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VIEW = "django_rtq.view_queue"
REQUEUE = "django_rtq.requeue_job"
CANCEL = "django_rtq.cancel_job"
DISCARD = "django_rtq.discard_job"
PAUSE = "django_rtq.pause_queue"
PURGE = "django_rtq.purge_queue"
ENQUEUE = "django_rtq.enqueue_job"
EDIT = "django_rtq.edit_job"
CONTROL = "django_rtq.control_worker"
PAUSE_TASK = "django_rtq.pause_task"
PAUSE_CLIENT = "django_rtq.pause_client"
LIMIT = "django_rtq.change_limits"


class UserPermissions:
    """A user's permissions in templates: ``{% if may.requeue_job %}``. Views check permissions themselves."""

    def __init__(self, user: Any) -> None:
        self._user = user

    def __getitem__(self, codename: str) -> bool:
        return bool(self._user.has_perm(f"django_rtq.{codename}"))

    def __iter__(self) -> Iterator[str]:
        raise TypeError("UserPermissions are asked for one by one.")
