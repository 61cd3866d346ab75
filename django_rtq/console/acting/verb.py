"""What can be done with a subject, and all its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext as _

from django_rtq.console.formatting import names_text
from django_rtq.console.nouns import Place
from django_rtq.console.sanitize import clean_text
from django_rtq.exceptions import RTQError

MAX_QUEUES_NAMED = 5


class Target(NamedTuple):
    """What something is done with."""

    name: str
    queue: str | None = None  # only there; None: in all queues, or it is in none
    by: str = ""  # who does it
    title: str = ""  # what people call it, if not by its name
    row: Any = None  # what was found of it, if that was looked up
    value: Any = None  # what a form or a command says beside it

    @property
    def words(self) -> dict[str, Any]:
        """What texts say of it."""
        return {
            "name": clean_text(self.title or self.name, 100) or _("(none)"),
            "id": clean_text(self.name, 60),
            "queue": self.queue or "",
            "event": clean_text(getattr(self.row, "event", ""), 100),
        }


class Said(NamedTuple):
    """What became of it."""

    how: Literal["done", "nothing", "refused"]
    text: str
    log: str = ""  # the entry of the log, if something was done
    answer: Any = None
    problem: str = ""  # why it was not done, or only a part of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What can be done with one row. Texts are marked for translation, and may name %(name)s, %(count)d, %(queues)s,
    %(answer)s."""

    name: str  # in addresses and commands
    label: Any  # of its button
    permission: str
    #: Does it. A number, or the queues in which something changed; None if it is not known. A word of `refused`.
    do: Callable[[Place, Target], Any] = lambda place, target: None
    done: Any = ""  # what is said if something changed, or that for each answer of `do`
    log: Any = ""  # the entry of the log; "": the same
    nothing: Any = ""  # what is said if nothing had to be changed
    refused: Mapping[Any, Any] = field(default_factory=dict)  # exceptions, or words that `do` returns -> what is said
    applies: Callable[[Any], bool] = lambda row: True  # whether it is offered for a row
    #: The address to which the button of a row leads, if it is another one: of the row, what makes addresses, and the
    #: address of its page.
    page: Callable[[Any, Callable[..., str], str], str] | None = None
    # Of the page that asks before: without a question there is none.
    title: Any = ""  # "": the label
    question: Any = ""
    consequence: Any = ""
    is_harmless: bool = False
    is_typed: bool = False  # whether the name has to be typed

    def run(self, place: Place, target: Target) -> Said:
        """Do it. Raises RTQError."""
        words, problem = target.words, ""
        try:
            answer = self.do(place, target)
        except RTQError as error:
            if type(error) not in self.refused:
                raise
            problem = str(self.refused[type(error)] % {**words, "error": clean_text(error, 300)})
            answer = getattr(error, "paused", None)  # the queues in which it was done
            if not answer:
                return Said("refused", problem, problem=problem)
        if isinstance(answer, str) and answer in self.refused:
            return Said("refused", self.refused[answer] % words, answer=answer)
        if not answer and answer is not None and self.nothing:
            return Said("nothing", self.nothing % words, answer=answer)
        words |= (
            {"queues": names_text(answer, MAX_QUEUES_NAMED), "count": len(answer)}
            if isinstance(answer, list)
            else {"count": answer, "answer": clean_text(answer)}
        )
        texts = (each[answer] if isinstance(each, Mapping) else each for each in (self.done, self.log))
        text, log = (each % words for each in texts)
        return Said("done", text, log or text, answer, problem)

    def would(self, noun: str, target: Target, how: str | list[str]) -> Said:
        """What would become of it, in English. `how`: as in Said, why it would be refused, or in which queues."""
        if how == "done" or (how and isinstance(how, list)):
            where = f" in {', '.join(how)}" if isinstance(how, list) else ""
            return Said("done", f"Would {self.name} {noun} {target.name or '(none)'}{where}.", answer=how)
        if how == "nothing" or not isinstance(how, str):
            return Said("nothing", self.nothing % target.words, answer=how)
        words = self.refused.get(how) or next(iter(self.refused.values()))
        return Said("refused", words % target.words, answer=how)
