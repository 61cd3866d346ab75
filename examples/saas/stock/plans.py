"""What tenants pay, and what the queue gives them for it."""

from django_rtq import rtq

PRICES = {"free": 0, "team": 2900, "company": 19900}  # cents a month
PLANS = {
    "free": {"max_running": "settings", "weight": "settings"},
    "team": {"max_running": 4, "weight": 3},
    "company": {"max_running": 10, "weight": 10},
}


def apply(tenant):
    """Set the limits of a tenant in Redis, where they win over the settings."""
    rtq.clients[tenant.slug].limit("default", **PLANS[tenant.plan])
