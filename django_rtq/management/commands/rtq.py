"""manage.py rtq"""

from django_rtq.console.commands.rtq import Command

__all__ = ["Command"]
