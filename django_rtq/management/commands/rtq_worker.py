"""manage.py rtq_worker"""

from django_rtq.core.commands.rtq_worker import Command

__all__ = ["Command"]
