"""The table of the database jobs."""

from __future__ import annotations

from django.db import models


class Account(models.Model):
    """A row that a job reads and writes."""

    balance = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"account {self.pk}"
