"""Metrics for Prometheus. Needs prometheus_client: pip install "django-rtq[prometheus]"."""

try:
    import prometheus_client  # noqa: F401
except ImportError as error:
    raise ImportError(
        "django_rtq.monitoring.prometheus needs the package prometheus_client. "
        'Install it with: pip install "django-rtq[prometheus]"'
    ) from error

from django_rtq.monitoring.prometheus.collector import RTQCollector
from django_rtq.monitoring.prometheus.exposition import metrics_view

__all__ = ["RTQCollector", "metrics_view"]
