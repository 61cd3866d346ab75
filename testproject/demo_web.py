"""The demo for looking around: the admin, with a worker at work and a little always to do.

PORT says where. Ctrl-C ends everything.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from itertools import count

from testproject.demo_stage import Stage, StageError
from testproject.redis_server import NoRedisServer, RedisDidNotStart

FLOOD, EACH = 300, 30
LOGIN = "demo"


def main() -> int:
    try:
        with Stage(appendonly=True) as stage:  # as a server should be set up: the pages would warn of another
            play(stage, next_free_port(int(os.environ.get("PORT", "8000"))))
    except (StageError, NoRedisServer, RedisDidNotStart) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; nothing is left running")
    return 0


def play(stage: Stage, port: int) -> None:
    """Start everything, and keep the worker busy until somebody stops us."""
    orders = open_office(stage, port)
    address = f"http://127.0.0.1:{port}/admin/"
    print(f"queues   {address}django_rtq/queue/   login {LOGIN}, password {LOGIN}")
    print("the payment service is out of order, so there are dead letters;")
    print(f"mend it  {address}shop/service/   then requeue them")
    print("Ctrl-C ends everything", flush=True)
    for second in count():
        stage.check()
        add_some_work(orders, second)
        time.sleep(1)


def open_office(stage: Stage, port: int) -> dict[str, list[int]]:
    """Start the admin and the worker, and leave them work. Returns the orders by tenant."""
    from django.contrib.auth import get_user_model

    from django_rtq.models import Schedule
    from testproject import demo_shop

    get_user_model().objects.create_superuser(LOGIN, f"{LOGIN}@example.com", LOGIN)
    orders = demo_shop.open_shop(flood=FLOOD, each=EACH)
    demo_shop.switch("payment", works=False)
    demo_shop.enqueue_work(orders)
    tenant = next(iter(orders))
    Schedule(name="daily takings", task="testproject.shop.tasks.build_report", args=[tenant, 3], every=30).save()
    stage.run("rtq_worker", "--queues", "orders,mail,reports", "--processes", "2")
    # --insecure: static files, although DEBUG is off. --noreload: one process, which ends when it is told to.
    stage.run("runserver", "--insecure", "--noreload", f"127.0.0.1:{port}")
    _wait_for(stage, port)
    return orders


def add_some_work(orders: dict[str, list[int]], second: int) -> None:
    """What the shop wants done in one second: most of it soon over, some slow, some in vain."""
    from testproject.shop import tasks

    tenant = random.choice(list(orders))
    order = random.choice(orders[tenant])
    tasks.audit_order.delay_many([((tenant, order), {})])
    tasks.send_order_mail.delay(tenant, order)
    tasks.resize_picture.using(run_after=20.0).delay(tenant, "cake.png")
    if second % 20 == 0:  # more than can run at once, and a little less than 20 seconds' work
        tasks.build_report.delay_many([((random.choice(list(orders)), random.uniform(1, 5)), {}) for _ in range(12)])
    if second % 15 == 0:
        tasks.charge_order.delay(tenant, order)
        tasks.send_order_mail.delay(tenant, 0)  # there is no such order: tried again, and dead after the third run


def _wait_for(stage: Stage, port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        stage.check()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise StageError(f"The admin did not answer.\n{stage.log_of('runserver')}")


def next_free_port(wanted: int) -> int:
    """The port, or the next one that nobody listens on."""
    for port in range(wanted, wanted + 20):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise StageError(f"The ports {wanted} to {wanted + 19} are taken: say which to use with PORT=…")


if __name__ == "__main__":
    sys.exit(main())
