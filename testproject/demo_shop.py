"""Data of the demos: tenants, customers, orders, and their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django_rtq import JobHandle
from testproject.shop import tasks
from testproject.shop.models import Customer, Order, Service, Tenant

FLOODER = "megastore"
SMALL = ("bakery", "bookshop", "florist", "tea-house")


@dataclass(kw_only=True)
class DemoJobs:
    """The enqueued jobs, by their expected outcome."""

    flood: list[JobHandle] = field(default_factory=list)
    small: dict[str, list[JobHandle]] = field(default_factory=dict)  # tenant -> its emails
    unpaid: list[JobHandle] = field(default_factory=list)  # fail until the payment service is on
    timed_out: list[JobHandle] = field(default_factory=list)
    crashing: list[JobHandle] = field(default_factory=list)  # crash their process
    buried: list[JobHandle] = field(default_factory=list)  # raise Bury
    healthy: list[JobHandle] = field(default_factory=list)

    @property
    def broken(self) -> list[JobHandle]:
        """Jobs that fail again after a requeue."""
        return [*self.timed_out, *self.crashing, *self.buried]

    @property
    def all(self) -> list[JobHandle]:
        mails = [job for jobs in self.small.values() for job in jobs]
        return [*self.flood, *mails, *self.unpaid, *self.broken, *self.healthy]


def open_shop(*, flood: int, each: int) -> dict[str, list[int]]:
    """Create tenants with orders. Returns the ids of the orders by tenant."""
    for service in ("mail", "payment", "carrier"):
        Service.objects.get_or_create(name=service)
    return {slug: _make_orders(slug, flood if slug == FLOODER else each) for slug in (FLOODER, *SMALL)}


def set_service(service: str, *, works: bool) -> None:
    """Turn a service on or off."""
    Service.objects.filter(name=service).update(works=works)


def enqueue_jobs(orders: dict[str, list[int]]) -> DemoJobs:
    """Enqueue the flood first, then the jobs of the other tenants."""
    work = DemoJobs()
    work.flood = _for_each(tasks.send_order_mail, FLOODER, orders[FLOODER])
    for tenant in SMALL:
        work.small[tenant] = _for_each(tasks.send_order_mail, tenant, orders[tenant])
        work.unpaid += _for_each(tasks.charge_order, tenant, orders[tenant][:3])
        work.healthy.append(tasks.ask_carrier.delay(tenant, orders[tenant][0]))
        work.healthy += _for_each(tasks.audit_order, tenant, orders[tenant][:1])
    later = tasks.resize_picture.using(run_after=timedelta(seconds=1))
    work.healthy.append(later.delay(SMALL[0], "cake.png"))
    work.timed_out = [tasks.print_catalogue.delay(tenant) for tenant in SMALL[:2]]
    work.crashing = [tasks.resize_picture.delay(SMALL[2], damage) for damage in ("exit", "segfault")]
    work.buried = [tasks.ship_order.delay(SMALL[3], 0)]
    return work


def _for_each(task: Any, tenant: str, order_ids: Sequence[int]) -> list[JobHandle]:
    jobs: list[JobHandle] = task.delay_many([((tenant, order_id), {}) for order_id in order_ids])
    return jobs


def _make_orders(slug: str, number: int) -> list[int]:
    tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"name": slug.title()})
    customer = Customer.objects.create(tenant=tenant, name=f"A customer of {tenant}", email=f"{slug}@example.com")
    first = 1 + tenant.order_set.count()
    orders = Order.objects.bulk_create(
        Order(tenant=tenant, customer=customer, number=n, total_cents=100 * n) for n in range(first, first + number)
    )
    return [order.pk for order in orders]
