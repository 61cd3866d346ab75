"""The filter of a list of jobs, which is the query of the search, as chips."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from django.utils.translation import gettext_lazy

from django_rtq.console.formatting import LIST_LABELS
from django_rtq.console.reading.selection import LISTS, Selection, words_of
from django_rtq.console.sanitize import clean_text
from django_rtq.core.jobs.details import JobDetails

#: Fields of a query: title, and the values that the jobs of a page suggest.
_FIELDS: dict[str, tuple[Any, Callable[[Sequence[JobDetails]], Iterable[str]]]] = {
    "state": (gettext_lazy("State"), lambda jobs: LISTS),
    "queue": (gettext_lazy("Queue"), lambda jobs: (job.queue for job in jobs)),
    "task": (gettext_lazy("Task"), lambda jobs: (job.task.rpartition(".")[2] for job in jobs)),
    "client": (gettext_lazy("Client"), lambda jobs: (job.client for job in jobs)),
    "class": (gettext_lazy("Error"), lambda jobs: (job.newest_error[0].rpartition(".")[2] for job in jobs)),
    "since": (gettext_lazy("Since"), lambda jobs: ("15min", "1h", "1d", "7d")),
}


def _word(field: str, value: str) -> str:
    """As a person writes it: a time stays relative."""
    return f"since:{value}" if field == "since" else str(Selection().narrowed(**{field: value}))


def chips(
    text: str, jobs: Sequence[JobDetails], url: Callable[[str], str], *, fixed: Collection[str] = ()
) -> dict[str, Any]:
    """Each word of a query with the address without it, and the words that can be added, by field.

    `url`: the address for a query. `fixed`: fields that the page has.
    """
    words = list(words_of(text))
    given = {word.partition(":")[0] for word in words}
    menus = []
    for field, (title, values) in _FIELDS.items():
        found = [] if field in fixed or field in given else list(dict.fromkeys(filter(None, values(jobs))))
        names = LIST_LABELS if field == "state" else {}
        options = [
            (names.get(value, clean_text(value, 60)), url(" ".join([*words, _word(field, value)]))) for value in found
        ]
        if options:
            menus.append({"title": title, "options": options})
    without = (" ".join(words[:place] + words[place + 1 :]) for place in range(len(words)))
    return {
        "chips": [(clean_text(word, 60), url(rest)) for word, rest in zip(words, without, strict=True)],
        "menus": menus,
    }
