"""manage.py rtq_workflows"""

from django_rtq.console.commands.rtq_workflows import Command

__all__ = ["Command"]
