"""Reports failures of jobs, traces and check-ins of schedules to Sentry.

    sentry_sdk.init(dsn=..., integrations=[RTQIntegration()])

Needs sentry-sdk: pip install "django-rtq[sentry]".
"""

try:
    import sentry_sdk  # noqa: F401
except ImportError as error:
    raise ImportError(
        'django_rtq.monitoring.sentry needs the package sentry-sdk. Install it with: pip install "django-rtq[sentry]"'
    ) from error

from django_rtq.monitoring.sentry.integration import RTQIntegration, SentryMiddleware

__all__ = ["RTQIntegration", "SentryMiddleware"]
