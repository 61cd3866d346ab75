"""Django's admin log has an entry for each action."""

from django_rtq.console.admin.action_log import MAX_CHARACTERS, log_action
from django_rtq.models import Queue
from tests.console.admin.conftest import logged


def test_long_texts_and_many_ids_are_cut(rf, admin_user):
    request = rf.get("/")
    request.user = admin_user
    log_action(request, Queue(name="mail"), "x" * 5000, [f"{n}" * 100 for n in range(1000, 1100)])
    (entry,) = logged()
    text, *ids = entry.split(" ")
    assert len(text) == MAX_CHARACTERS
    assert (ids[0].rstrip(","), ids[20:]) == (("1000" * 16), ["and", "80", "more"])
