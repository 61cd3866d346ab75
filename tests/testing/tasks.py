"""Tasks for tests of django_rtq.testing."""

from django_rtq import Bury, Retry, current_job, task

ran = []  # what the tasks did, in order


@task(client=lambda shop, **_: shop)
def charge(order, *, shop="", amounts=()):
    ran.append(("charge", order, shop, amounts))
    return {"order": order, "amounts": amounts}


@task(queue_name="mail")
def send_mail(to):
    ran.append(("send_mail", to))


@task(unique=["key"])
def once(key, value=0):
    ran.append(("once", key, value))


@task(takes_context=True)
def describe(context, name):
    ran.append(("describe", name))
    job = current_job()
    return [name, context.job_id == job.job_id, context.attempt, context.queue_name, context.client]


@task
async def fetch(url):
    ran.append(("fetch", url))
    return f"{url}!"


@task(max_attempts=3, backoff=60)
def flaky(failures):
    """Fails so often, and then succeeds."""
    attempt = current_job().attempt
    ran.append(("flaky", attempt))
    if attempt <= failures:
        raise ConnectionError(f"attempt {attempt}")
    return attempt


@task
def give_up(reason):
    raise Bury(reason)


@task
def later(seconds):
    raise Retry("not yet", after=seconds)


@task
def outer(name):
    ran.append(("begin", name))
    inner = describe.delay(name)
    ran.append(("end", name))
    return [current_job().job_id != inner.id, inner.result]
