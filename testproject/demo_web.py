"""The demo of the admin: a web server and a worker with a steady supply of jobs.

PORT is the port of the web server. Ctrl-C stops everything.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from itertools import count

from testproject.demo_environment import DemoEnvironment, DemoError
from testproject.redis_server import NoRedisServer, RedisDidNotStart

FLOOD, EACH = 300, 30
LOGIN = "demo"


def main() -> int:
    try:
        with DemoEnvironment(appendonly=True) as env:  # recommended; the pages would show a warning without it
            run(env, next_free_port(int(os.environ.get("PORT", "8000"))))
    except (DemoError, NoRedisServer, RedisDidNotStart) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped all processes")
    return 0


def run(env: DemoEnvironment, port: int) -> None:
    """Start everything, and keep the worker busy until Ctrl-C."""
    orders = start_admin(env, port)
    url = f"http://127.0.0.1:{port}/admin/"
    print(f"queues   {url}django_rtq/queue/   login {LOGIN}, password {LOGIN}")
    print("the payment service is off, so there are dead letters;")
    print(f"turn on  {url}shop/service/   then requeue them")
    print("Ctrl-C stops everything", flush=True)
    for second in count():
        env.check()
        add_jobs(orders, second)
        time.sleep(1)


def start_admin(env: DemoEnvironment, port: int) -> dict[str, list[int]]:
    """Start the web server and a worker, and enqueue jobs. Returns the orders by tenant."""
    from django.contrib.auth import get_user_model

    from django_rtq.models import Schedule
    from testproject import demo_shop

    get_user_model().objects.create_superuser(LOGIN, f"{LOGIN}@example.com", LOGIN)
    orders = demo_shop.open_shop(flood=FLOOD, each=EACH)
    demo_shop.set_service("payment", works=False)
    demo_shop.enqueue_jobs(orders)
    tenant = next(iter(orders))
    Schedule(name="daily takings", task="testproject.shop.tasks.build_report", args=[tenant, 3], every=30).save()
    env.run("rtq_worker", "--queues", "orders,mail,reports", "--processes", "2")
    # --insecure serves static files although DEBUG is off. --noreload uses one process, which stops at SIGTERM.
    env.run("runserver", "--insecure", "--noreload", f"127.0.0.1:{port}")
    _wait_for(env, port)
    return orders


def add_jobs(orders: dict[str, list[int]], second: int) -> None:
    """Enqueue the jobs of one second: most are fast, some slow, some fail."""
    from testproject.shop import tasks

    tenant = random.choice(list(orders))
    order = random.choice(orders[tenant])
    tasks.audit_order.delay_many([((tenant, order), {})])
    tasks.send_order_mail.delay(tenant, order)
    tasks.resize_picture.using(run_after=20.0).delay(tenant, "cake.png")
    if second % 20 == 0:  # more than can run at once, and a bit less than 20 seconds of work
        tasks.build_report.delay_many([((random.choice(list(orders)), random.uniform(1, 5)), {}) for _ in range(12)])
    if second % 15 == 0:
        tasks.charge_order.delay(tenant, order)
        tasks.send_order_mail.delay(tenant, 0)  # there is no such order: fails three times, then is a dead letter


def _wait_for(env: DemoEnvironment, port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        env.check()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise DemoError(f"The web server did not start.\n{env.log_of('runserver')}")


def next_free_port(wanted: int) -> int:
    """The port, or the next free one."""
    for port in range(wanted, wanted + 20):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise DemoError(f"The ports {wanted} to {wanted + 19} are in use: choose another with PORT=…")


if __name__ == "__main__":
    sys.exit(main())
