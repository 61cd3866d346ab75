"""Sends a newsletter: one job for each address, and one that counts them."""

try:
    from django.tasks import task
    from django.tasks.base import TaskResultStatus
except ImportError:
    from django_tasks import TaskResultStatus, task


@task(priority=10)
def deliver(address, *, subject):
    if "@" not in address:
        raise ValueError(f"{address} is no address")
    return {"to": address, "subject": subject}


@task(takes_context=True)
async def summarize(context, result_ids):
    """Enqueued after the others. Says what became of them."""
    results = [await deliver.aget_result(result_id) for result_id in result_ids]
    sent = [result.return_value["to"] for result in results if result.status == TaskResultStatus.SUCCESSFUL]
    failed = [error.exception_class_path for result in results for error in result.errors]
    return {"sent": sent, "failed": failed, "attempt": context.attempt}


def send(addresses, subject):
    """What the project calls. Returns the result of the summary."""
    results = [deliver.enqueue(address, subject=subject) for address in addresses]
    return summarize.enqueue([result.id for result in results])
