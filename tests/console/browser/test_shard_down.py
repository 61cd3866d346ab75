"""One of two shards does not answer: an operator sees which, and what is missing, and all goes on when it is back."""

import pytest

from tests.app import tasks
from tests.console.browser.actions import find, follow, shows
from tests.console.browser.admin_server import refresh_every
from tests.console.browser.conftest import OFTEN
from tests.console.browser.test_flows import OVERVIEW
from tests.console.browser.test_pages import assert_fits_everywhere, violations
from tests.scale.shards.conftest import client_of, clients, servers, shards  # noqa: F401


@pytest.fixture
def admin_server(admin_servers, servers, shards):  # noqa: F811
    """An admin server of a project with two shards."""
    return admin_servers(**refresh_every(OFTEN, SHARD_SERVERS=[server.url for server in servers]))


@pytest.fixture
def export(servers, worker, journal):  # noqa: F811
    """A job that runs in shard 1, and waits for its gate. Then that shard stops to answer."""
    worker()
    export = journal.begin(tasks.gate.using(client=client_of(1)), "export", "gate")
    servers[1].pause()
    yield export
    servers[1].resume()
    journal.open("gate")


def test_a_shard_is_down_and_the_others_go_on(export, journal, page, console_errors):
    page.goto(OVERVIEW)
    card = page.locator(".rtq-incidents li.rtq-bad")
    shows(card, "Shard 1 does not answer. Its jobs wait, and those of the other shards go on.")
    assert violations(page) == []
    assert_fits_everywhere(page)
    tasks.note.using(client=client_of(0)).delay("meanwhile")
    journal.wait("end", "meanwhile")

    follow(page.get_by_role("link", name="Shard 1"))
    shows(page.locator(".rtq"), "Redis is not responding")
    follow(page.get_by_role("link", name="Shard 0"))  # the second click
    shows(page.locator(".rtq-line-of"), "Workers")
    console_errors.clear()  # the browser notes the 503


def test_where_is_the_job_of_a_client_of_a_shard_that_is_down(export, servers, journal, page, console_errors):  # noqa: F811
    page.goto(f"/admin/django_rtq/client/client/?client={client_of(1)}")
    shows(page.locator("[data-rtq-live=silent]"), "Shard 1 has not answered since")
    shows(page.locator("[data-rtq-live=list]"), "Not all shards have answered.")
    find(page, export.id)
    shows(page.locator("[data-rtq-live=silent]"), "Shard 1 has not answered since")
    page.goto(f"/admin/django_rtq/job/{export.id}/")
    shows(page.locator(".rtq"), "Shard 1 does not answer.")

    journal.open("gate")
    servers[1].resume()
    shows(page.locator(".rtq-state").first, "succeeded")  # its page comes back by itself
    console_errors.clear()  # the browser notes each 503
