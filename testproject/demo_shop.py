"""The shop of the demos: tenants, customers, orders, and the jobs about them."""

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
class Work:
    """The jobs that were enqueued, by what will become of them."""

    flood: list[JobHandle] = field(default_factory=list)
    small: dict[str, list[JobHandle]] = field(default_factory=dict)  # tenant -> its mails
    unpaid: list[JobHandle] = field(default_factory=list)  # fail until the payment service is mended
    too_long: list[JobHandle] = field(default_factory=list)
    deadly: list[JobHandle] = field(default_factory=list)  # take their worker down
    hopeless: list[JobHandle] = field(default_factory=list)  # give up by themselves
    sound: list[JobHandle] = field(default_factory=list)

    @property
    def bad(self) -> list[JobHandle]:
        """Those that no requeue helps."""
        return [*self.too_long, *self.deadly, *self.hopeless]

    @property
    def all(self) -> list[JobHandle]:
        mails = [job for jobs in self.small.values() for job in jobs]
        return [*self.flood, *mails, *self.unpaid, *self.bad, *self.sound]


def open_shop(*, flood: int, each: int) -> dict[str, list[int]]:
    """Make the tenants with their orders. Returns the ids of the orders by tenant."""
    for service in ("mail", "payment", "carrier"):
        Service.objects.get_or_create(name=service)
    return {slug: _make_orders(slug, flood if slug == FLOODER else each) for slug in (FLOODER, *SMALL)}


def switch(service: str, *, works: bool) -> None:
    """Break or mend a service."""
    Service.objects.filter(name=service).update(works=works)


def enqueue_work(orders: dict[str, list[int]]) -> Work:
    """The flood first; whatever the others want comes after it."""
    work = Work()
    work.flood = _for_each(tasks.send_order_mail, FLOODER, orders[FLOODER])
    for tenant in SMALL:
        work.small[tenant] = _for_each(tasks.send_order_mail, tenant, orders[tenant])
        work.unpaid += _for_each(tasks.charge_order, tenant, orders[tenant][:3])
        work.sound.append(tasks.ask_carrier.delay(tenant, orders[tenant][0]))
        work.sound += _for_each(tasks.audit_order, tenant, orders[tenant][:1])
    later = tasks.resize_picture.using(run_after=timedelta(seconds=1))
    work.sound.append(later.delay(SMALL[0], "cake.png"))
    work.too_long = [tasks.print_catalogue.delay(tenant) for tenant in SMALL[:2]]
    work.deadly = [tasks.resize_picture.delay(SMALL[2], damage) for damage in ("exit", "segfault")]
    work.hopeless = [tasks.ship_order.delay(SMALL[3], 0)]
    return work


def _for_each(task: Any, tenant: str, order_ids: Sequence[int]) -> list[JobHandle]:
    jobs: list[JobHandle] = task.delay_many([((tenant, order_id), {}) for order_id in order_ids])
    return jobs


def _make_orders(slug: str, number: int) -> list[int]:
    tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"name": slug.title()})
    customer = Customer.objects.create(tenant=tenant, name=f"A friend of {tenant}", email=f"{slug}@example.com")
    first = 1 + tenant.order_set.count()
    orders = Order.objects.bulk_create(
        Order(tenant=tenant, customer=customer, number=n, total_cents=100 * n) for n in range(first, first + number)
    )
    return [order.pk for order in orders]
