"""manage.py rtq_workers"""

from django_rtq.console.commands.rtq_workers import Command

__all__ = ["Command"]
