"""Shows what is in Redis in every way: prints the state of jobs (ids as JSON in the first argument; "" if one is not
found), what results say, the handles of equal unique jobs, and the pages of the admin that fail, as JSON."""

import json
import os
import re
import sys

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.test import Client  # noqa: E402
from shop import tasks  # noqa: E402
from write import VALUES  # noqa: E402

from django_rtq import JobNotFound, rtq  # noqa: E402

MOST_PAGES = 150 if os.environ.get("RTQ_TEST_NIGHTLY") else 45


def states(ids):
    return {kind: [state(job_id) for job_id in job_ids] for kind, job_ids in ids.items()}


def state(job_id):
    try:
        return str(rtq.job(job_id).details().state)
    except JobNotFound:
        return ""


def failing_pages():
    """Follows links from the overview, and returns how many pages were read and which failed."""
    user, _ = get_user_model().objects.get_or_create(username="admin", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    ahead, seen, failed = ["/admin/"], set(), {}
    while ahead and len(seen) < MOST_PAGES:
        url = ahead.pop(0)
        if url in seen:
            continue
        seen.add(url)
        response = client.get(url)
        if response.status_code not in (200, 302):
            failed[url] = response.status_code
        if response.status_code == 200 and "text/html" in response["Content-Type"]:
            links = re.findall(r'href="(/admin/[^"#]*)"', response.content.decode())
            ahead += [link.replace("&amp;", "&") for link in links if "/auth/" not in link and "logout" not in link]
    return len(seen), failed


def main():
    ids = json.loads(sys.argv[1])
    pages, failed = failing_pages()
    echoed = [rtq.job(job_id).details() for kind in ("succeeded", "queued") for job_id in ids[kind]]
    return {
        "states": states(ids),
        "results": [rtq.job(job_id).details().result for job_id in ids["succeeded"][:3]],
        "values": [job.kwargs == VALUES for job in echoed if job.task == "shop.tasks.echo"],
        "result_values": rtq.job(ids["succeeded"][3]).details().result == VALUES,
        "errors": [rtq.job(job_id).details().newest_error for job_id in [*ids["dead"], *ids["retrying"]]],
        "duplicates": [tasks.once.delay("one").id],
        "django": [tasks.receipt.get_result(job_id).return_value for job_id in ids["django"]],
        "pages": pages,
        "failed_pages": failed,
    }


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
