"""manage.py rtq_clients"""

from django_rtq.console.commands.rtq_clients import Command

__all__ = ["Command"]
