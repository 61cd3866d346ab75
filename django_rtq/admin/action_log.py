"""Who did what: an entry in the log of the admin for each action, one for a bulk of them."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import ngettext

from django_rtq.models import AdminEntry

_IDS_IN_WORDS = 20


def note(request: HttpRequest, entry: AdminEntry, message: str, ids: Sequence[str] = ()) -> None:
    """Write down what was done. Of many jobs only the first ids are named."""
    if ids:
        message = f"{message} {in_words(ids)}"
    assert request.user.pk is not None  # nobody without an account gets this far
    LogEntry.objects.log_actions(request.user.pk, [entry], CHANGE, Truncator(message).chars(2000), single_object=True)


def in_words(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are."""
    names, more = ", ".join(i[:64] for i in ids[:_IDS_IN_WORDS]), len(ids) - _IDS_IN_WORDS
    if more <= 0:
        return names
    text = ngettext("%(names)s, … (%(count)d more)", "%(names)s, … (%(count)d more)", more)
    return text % {"names": names, "count": more}
