"""The tasks of the shop. Most succeed, and there is one for each way to fail."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from typing import Any

from django_rtq import Bury, Retry, constant, exponential, task
from testproject.shop.models import Order, OrderMail, Service


class OutOfOrder(Exception):
    """A service that the shop depends on is off."""


def tenant_of(tenant: str, *args: object, **kwargs: object) -> str:
    """The client of a job: the tenant, the first argument of every task of the shop."""
    return tenant


def require(name: str) -> None:
    """Raises OutOfOrder if the service is off. Unknown services are on."""
    if Service.objects.filter(name=name, works=False).exists():
        raise OutOfOrder(f"the {name} service does not answer")


@task(queue_name="mail", client=tenant_of, max_attempts=3, backoff=exponential(base=2, cap=60))
def send_order_mail(tenant: str, order_id: int) -> int:
    """Send the email of an order once, however often the job runs. Returns its number."""
    mail = OrderMail.objects.filter(order_id=order_id).only("pk").first()
    if mail is None:
        require("mail")
        order = Order.objects.select_related("customer").get(pk=order_id)
        mail, _ = OrderMail.objects.get_or_create(
            order=order,
            defaults={"recipient": order.customer.email, "subject": f"Your order {order.number}"},
        )
    return int(mail.pk)


@task(queue_name="orders", client=tenant_of, max_attempts=2, backoff=constant(0.2))
def charge_order(tenant: str, order_id: int) -> str:
    """Fails until the payment service is on."""
    require("payment")
    Order.objects.filter(pk=order_id, status=Order.Status.PLACED).update(status=Order.Status.PAID)
    return "paid"


@task(queue_name="orders", client=tenant_of, max_attempts=5)
def ship_order(tenant: str, order_id: int) -> str:
    """Retries until the order is paid. Raises Bury if there is no such order."""
    order = Order.objects.filter(pk=order_id).first()
    if order is None:
        raise Bury(f"there is no order {order_id}")
    if order.status == Order.Status.PLACED:
        raise Retry("not paid yet", after=0.2)
    require("carrier")
    Order.objects.filter(pk=order_id).update(status=Order.Status.SHIPPED)
    return "shipped"


@task(queue_name="orders", client=tenant_of, max_attempts=1, time_limit=0.5)
def print_catalogue(tenant: str, seconds: float = 30.0) -> None:
    """Exceeds its time limit."""
    time.sleep(seconds)


@task(queue_name="orders", client=tenant_of, max_crashes=1)
def resize_picture(tenant: str, picture: str) -> str:
    """Crashes its process if the picture is "exit" or "segfault"."""
    if picture == "exit":
        os._exit(3)
    if picture == "segfault":
        ctypes.string_at(0)
    return picture


@task(queue_name="reports", client=tenant_of)
def build_report(tenant: str, seconds: float = 60.0) -> float:
    """Runs for so many seconds, in short steps. Returns how long it took."""
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        time.sleep(min(0.1, seconds - elapsed))
    return round(elapsed, 3)


@task(queue_name="orders", client=tenant_of)
async def ask_carrier(tenant: str, order_id: int) -> str:
    """Waits without blocking a thread."""
    await asyncio.sleep(0.05)
    order = await Order.objects.aget(pk=order_id)
    return f"order {order.number} is on its way"


@task(queue_name="orders", client=tenant_of, takes_context=True)
def audit_order(context: Any, tenant: str, order_id: int) -> dict[str, Any]:
    """Returns what a job knows about itself."""
    return {
        "job_id": context.job_id,
        "attempt": context.attempt,
        "queue_name": context.queue_name,
        "client": context.client,
        "order_id": order_id,
    }
