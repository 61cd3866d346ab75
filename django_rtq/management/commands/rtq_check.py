"""manage.py rtq_check"""

from django_rtq.console.commands.rtq_check import Command

__all__ = ["Command"]
