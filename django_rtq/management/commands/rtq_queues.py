"""manage.py rtq_queues"""

from django_rtq.console.commands.rtq_queues import Command

__all__ = ["Command"]
