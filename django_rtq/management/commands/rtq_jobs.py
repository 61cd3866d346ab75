"""manage.py rtq_jobs"""

from django_rtq.console.commands.rtq_jobs import Command

__all__ = ["Command"]
