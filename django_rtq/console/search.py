"""Reads the query of a search over all queues and states."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from django_rtq.console.reading.actions import ACTIONS, Verb
from django_rtq.console.reading.members import workflow_ids_of
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import LONGEST, QueryError, Selection, query_error

#: The order in which states are searched.
STATES = ("running", "dead", "retrying", "queued", "scheduled", "finished")


def read_query(readers: Readers, text: str, longest: int = LONGEST) -> Selection:
    """Read a query, and look up the workflows of a name. Raises QueryError, and for names of workflows BrokerError."""
    if len(text) > longest:
        raise QueryError(_("The query is longer than %(most)s characters.") % {"most": longest})
    return with_workflows(readers, Selection.parse(text))


def with_workflows(readers: Readers, query: Selection) -> Selection:
    """A query with the ids of the workflows that it names. Raises QueryError if there are none, and BrokerError."""
    text = query.workflow
    ids = workflow_ids_of(readers, text) if text else None
    if ids == []:
        raise query_error(f"workflow:{text}", _("no workflow has this name, or it ended long ago"))
    return replace(query, workflow_ids=tuple(ids or ()))


def check_states(verb: Verb, selection: Selection) -> None:
    """Raises QueryError if it cannot be done with jobs in the states that are named, or only with more jobs."""
    client = selection.client
    is_all = not selection.states and selection.anywhere == Selection(client=client)
    if verb == "erase" and not (client and is_all):
        raise QueryError(_("erase is for all of a client that has a name."))
    if verb == "purge" and not is_all:
        raise QueryError(_("purge is for all jobs that wait, or all of a client; cancel those that match."))
    allowed = ACTIONS[verb].states
    if wrong := [state for state in selection.states if state not in allowed]:
        why = _("%(verb)s is for jobs that are %(states)s") % {"verb": verb, "states": ", ".join(allowed)}
        raise query_error(f"state:{wrong[0]}", why)
