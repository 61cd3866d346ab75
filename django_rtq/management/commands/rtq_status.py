"""manage.py rtq_status"""

from django_rtq.console.commands.rtq_status import Command

__all__ = ["Command"]
