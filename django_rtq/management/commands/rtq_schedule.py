"""manage.py rtq_schedule"""

from django_rtq.console.commands.rtq_schedule import Command

__all__ = ["Command"]
