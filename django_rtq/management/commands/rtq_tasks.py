"""manage.py rtq_tasks"""

from django_rtq.console.commands.rtq_tasks import Command

__all__ = ["Command"]
