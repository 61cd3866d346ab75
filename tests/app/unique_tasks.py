"""Jobs of which no second like them may live."""

from django_rtq import task
from tests.app.tasks import AT_ONCE, told, wait_for


@task(backoff=AT_ONCE, unique=["name"], unique_on_conflict="rerun")
def keep_up(name, version, gate=None):
    """Bring something up to date, once more when it changed meanwhile."""
    with told(f"{name}-{version}"):
        if gate:
            wait_for(gate)
