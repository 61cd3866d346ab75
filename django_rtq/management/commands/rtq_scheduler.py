"""manage.py rtq_scheduler"""

from django_rtq.core.commands.rtq_scheduler import Command

__all__ = ["Command"]
