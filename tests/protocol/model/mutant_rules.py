"""Makes mutants by rules: each changes one statement or expression of a Lua file.

A mutant is named by its file, its function, and the text before and after, so its name outlasts changes elsewhere. Of
those that leave out a part of an expression, half are no mistakes: they save a look-up. They count only by their names.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.model.lua_syntax import Node, Span, Syntax

OPPOSITES = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    **{"math.min": "math.max", "math.max": "math.min", "math.floor": "math.ceil", "math.ceil": "math.floor"},
    **{'"LPUSH"': '"RPUSH"', '"RPUSH"': '"LPUSH"', '"LPOP"': '"RPOP"', '"RPOP"': '"LPOP"', '"NX"': '"XX"'},
    **{'"(inf"': '"+inf"', '"LT"': '"XX"', '"GT"': '"XX"'},
}
_KEY = re.compile(r"q\.\w+")
_FLAGS = ('"LT"', '"GT"', '"NX"')


class GeneratedMutant(NamedTuple):
    """One mistake in one file."""

    name: str
    file: str  # as in "claim", "lib/turns", "queries/find_job"
    function: str  # "": the script itself
    right: str  # the text of the file
    span: Span  # where the mistake is
    new: str  # what is there instead
    is_by_name: bool  # it counts only if found_by.json has its name

    @property
    def source(self) -> str:
        """Of the whole file, with the mistake."""
        return self.right[: self.span.start] + self.new + self.right[self.span.end :]


def mutants_of(file: str, source: str) -> list[GeneratedMutant]:
    """All that the rules make of a file. Two alike in one function are numbered."""
    seen: Counter[str] = Counter()
    mutants = []
    for node, span, new, is_by_name in sorted(_changes(Syntax(source)), key=lambda change: change[1:]):
        name = " ".join(f"{file} {node.function}: {_shown(source, node, span, new)}".split())
        seen[name] += 1
        number = f" #{seen[name]}" if seen[name] > 1 else ""
        assert source[span.start : span.end] != new
        mutants.append(GeneratedMutant(name + number, file, node.function, source, span, new, is_by_name))
    return mutants


def _shown(source: str, node: Node, span: Span, new: str) -> str:
    """What is changed, with the expression around it."""
    around = source[node.span.start : span.start], source[span.end : node.span.end]
    old = source[span.start : span.end]
    return f"{around[0]}[{old} -> {new or 'nothing'}]{around[1]}"


def _changes(syntax: Syntax) -> Iterator[tuple[Node, Span, str, bool]]:
    """Where a text is replaced, and by what, and whether that counts only by its name."""
    for rules, is_by_name in ((_RULES, False), (_RULES_BY_NAME, True)):
        for node in syntax.nodes:
            for span, new in rules.get(node.kind, _nothing)(syntax, node):
                yield node, span, new, is_by_name


def _nothing(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """Nothing is changed."""
    yield from ()


def _statement(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """It is left out. But for what matters on a full server alone, and in a loop that might not end then."""
    is_scratch = syntax.source.startswith('redis.call("DEL", q.scratch)', node.span.start)
    if not is_scratch and not (node.kind == "assign" and node.is_in_while):
        yield node.span, ""


def _condition(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """It holds always, or never. Not that of a loop, which might not end."""
    if node.word in ("if", "elseif"):
        yield node.span, "true"
        if not _is_before_one_call(syntax, node):
            yield node.span, "false"


def _is_before_one_call(syntax: Syntax, node: Node) -> bool:
    """`if ... then call() end`: that the call is left out is the same."""
    rest = syntax.source[node.span.end :]
    after = re.match(r"\s*then\s*", rest)
    start = node.span.end + (after.end() if after else 0)
    return any(
        body.kind in ("statement", "assign")
        and body.span.start == start
        and re.match(r"\s*end\b", syntax.source[body.span.end :])
        for body in syntax.nodes
    )


def _binary(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """A limit belongs to the other side. Not 0: whether there is anything at all."""
    left, right = node.parts
    if node.word in OPPOSITES and syntax.source[right.start : right.end] != "0":
        yield Span(left.end, right.start), f" {OPPOSITES[node.word]} "


def _call(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """The least becomes the most, the first the last, and one of several keys is left out."""
    if node.word in OPPOSITES:
        yield Span(node.span.start, node.span.start + len(node.word)), OPPOSITES[node.word]
    if node.word == "redis.call":
        yield from _list(syntax, node)


def _list(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """One of several keys, next to each other, is left out."""
    texts = [syntax.source[part.start : part.end] for part in node.parts]
    are_keys = [bool(_KEY.fullmatch(text)) for text in texts]
    for place in range(1, len(texts)):
        if are_keys[place] and are_keys[place - 1]:
            yield Span(node.parts[place - 1].end, node.parts[place].end), ""


def _text(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """A word of a command of Redis."""
    word = syntax.source[node.span.start : node.span.end]
    if word in OPPOSITES:
        yield node.span, OPPOSITES[word]


def _side(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """One side is left out. Not in a loop that might not end then."""
    left, right = node.parts
    if node.word in ("and", "or", "+", "-", "*") and not node.is_in_while:
        yield Span(left.end, right.end), ""
    if node.word in ("and", "or", "+", "*") and not node.is_in_while:
        yield Span(left.start, right.start), ""


def _argument(syntax: Syntax, node: Node) -> Iterator[tuple[Span, str]]:
    """One of those of which the least or the most is taken, or a flag of a command, is left out."""
    texts = [syntax.source[part.start : part.end] for part in node.parts]
    for place, text in enumerate(texts[1:], 1):
        if node.word in ("math.min", "math.max") or text in _FLAGS:
            yield Span(node.parts[place - 1].end, node.parts[place].end), ""
    if node.word in ("math.min", "math.max"):
        yield Span(node.parts[0].start, node.parts[1].start), ""


_RULES = {
    "statement": _statement,
    "assign": _statement,
    "condition": _condition,
    "binary": _binary,
    "call": _call,
    "table": _list,
    "text": _text,
}
_RULES_BY_NAME = {"binary": _side, "call": _argument}
