"""Which jobs: the text that people write, and what it means."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.selection import QueryError, Selection


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", {}),
        ("timeout", {"text": "timeout"}),
        ("no stock", {"text": "no stock"}),
        ("no task:ship stock", {"text": "no stock", "task": "ship"}),
        ('"no  stock"', {"text": "no  stock"}),
        ('"https://example.com"', {"text": "https://example.com"}),
        (r'"say \"hi\" \\"', {"text": 'say "hi" \\'}),
        ("task:ship client:acme id:018f", {"task": "ship", "client": "acme", "id": "018f"}),
        ('client:"Big Corp"', {"client": "Big Corp"}),
        ("client:", {"client": ""}),
        ('workflow:"month end"', {"workflow": "month end"}),
        ("error:NoStock", {"error": "NoStock"}),
        ('error:"no: such"', {"error": "no: such"}),
        ("class:shop.NoStock", {"error_class": "shop.NoStock"}),
        ("state:expired", {"outcome": "expired"}),
        ("12:30", {"text": "12:30"}),
    ],
)
def test_a_query_is_read(text, wanted):
    query = Selection.parse(text)

    assert query.anywhere == Selection(**wanted)
    assert Selection.parse(str(query)) == query


def test_the_words_on_the_page_of_the_admin_are_understood():
    section = Path("docs/admin.md").read_text().partition("## Search")[2].partition("## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    words = [word for row in rows for word in re.findall(r"`([^`]*)`", row)]

    assert all(Selection.parse(word) != Selection() for word in words)
    assert len(words) >= 12


def test_queues_and_states_say_where_to_search():
    query = Selection.parse("queue:mail state:dead queue:low state:queued queue:mail")

    assert (query.queues, query.states, query.is_filtered) == (("mail", "low"), ("dead", "queued"), False)
    assert str(query) == "queue:mail queue:low state:dead state:queued"


def test_the_state_of_a_finished_job_is_looked_for_among_finished_ones():
    query = Selection.parse("state:cancelled")

    assert (query.states, query.outcome) == (("finished",), "cancelled")


def test_times_are_ago_or_moments():
    query = Selection.parse("since:2h before:2026-01-31T08:00+00:00")

    ago = datetime.now(timezone.utc) - query.since
    assert timedelta(hours=2) <= ago < timedelta(hours=2, minutes=5)
    assert query.before == datetime(2026, 1, 31, 8, tzinfo=timezone.utc)
    assert Selection.parse(str(query)) == query


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "tsk:ship",
            "tsk:ship: there is no such field; the fields are id, task, client, workflow, error, class, queue, ",
        ),
        ("tsk:ship", "Did you mean task?"),
        ("https://example.com", "To search for this text, put it in quotes."),
        ("state:dea", "state:dea: there is no such state; the states are queued, scheduled, running, retrying, dead, "),
        ("state:dea", "Did you mean dead?"),
        ("state:cancelled state:dead", "state:cancelled: it cannot be combined with another state."),
        ("since:yesterday", "since:yesterday: this is not a time; write for example 90s, 30min, 2h, 7d or "),
        ("since:999999d", "since:999999d: this is not a time; write for example 90s, 30min, 2h, 7d or "),
        ("since:1h since:2h", "since:2h: since is given twice."),
        ("task:", "task:: a value is missing behind the colon."),
        ('ship "no stock', '"no stock: a quotation mark is missing at its end.'),
        ('client:"Big Corp', 'client:"Big Corp: a quotation mark is missing at its end.'),
        ("queue:a/b", "queue:a/b: no queue can have this name."),
        ("x" * 501, "The query is longer than 500 characters."),
    ],
)
def test_what_cannot_be_understood_is_named(readers, text, said):
    with pytest.raises(QueryError) as caught:
        read_query(readers, text)

    assert said in str(caught.value)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@given(
    st.builds(
        Selection,
        queues=st.lists(st.sampled_from(["mail", "low-1"]), unique=True).map(tuple),
        states=st.lists(st.sampled_from(["dead", "queued"]), unique=True).map(tuple),
        task=texts,
        client=st.none() | texts,
        error_class=texts,
        text=texts,
    )
)
def test_every_selection_can_be_written_as_a_query(selection):
    assert Selection.parse(str(selection)) == selection
