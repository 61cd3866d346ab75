"""manage.py rtq_metrics"""

from django_rtq.monitoring.rtq_metrics import Command

__all__ = ["Command"]
