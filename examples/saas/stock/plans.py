"""What tenants pay, and what the queue gives them for it."""

PRICES = {"free": 0, "team": 2900, "company": 19900}  # cents a month
PLANS = {
    "free": {"max_running": 1},
    "team": {"max_running": 4, "weight": 3},
    "company": {"max_running": 10, "weight": 10},
}


def limits(client):
    """The limits of a tenant (`limits_of` in the settings). Asked once a minute at most while it enqueues jobs."""
    from stock.models import Tenant

    plan = Tenant.objects.filter(slug=client).values_list("plan", flat=True).first()
    return PLANS.get(plan)
