"""Reads Lua files: where their functions, statements and expressions begin and end."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<operator>\.\.\.|\.\.|[=~<>]=|[-+*/%^\#<>=(){}\[\];:,.])""",
    re.VERBOSE,
)
_ENDS_OF_BLOCKS = {"end", "else", "elseif", "until", ""}
_STRENGTHS = {
    **{"or": 1, "and": 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3, "..": 4},
    **{"+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "^": 8},
}
_STRENGTH_OF_UNARY = 7


class Span(NamedTuple):
    """A part of a text."""

    start: int
    end: int


@dataclass(frozen=True)
class Node:
    """A statement or an expression: "call", "assign" and so on, its text, and those of what it is made of."""

    kind: str
    span: Span
    parts: tuple[Span, ...] = ()
    word: str = ""  # the operator, the keyword before a condition, or the function that is called
    function: str = ""  # the one of the file that it is in; "": none
    is_in_while: bool = False  # a loop that might not end


class Syntax:
    """All nodes of a file, in the order in which they end."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.nodes: list[Node] = []
        self._tokens = [*_tokens(source), ("", Span(len(source), len(source)), "")]
        self._place = 0
        self._function = ""
        self._loops = 0
        self._block()
        assert self._place == len(self._tokens) - 1, f"not understood: {source[self._start :][:80]!r}"

    # -- tokens

    @property
    def _next(self) -> str:
        return self._tokens[self._place][0]

    @property
    def _start(self) -> int:
        return self._tokens[self._place][1].start

    @property
    def _end(self) -> int:
        """Of what was read."""
        return self._tokens[self._place - 1][1].end

    def _take(self, *wanted: str) -> str:
        word = self._next
        assert not wanted or word in wanted, f"{word!r} instead of {wanted}: {self.source[self._start :][:80]!r}"
        self._place += 1
        return word

    def _add(self, kind: str, start: int, *parts: Span, word: str = "") -> None:
        span = Span(start, self._end)
        self.nodes.append(Node(kind, span, parts, word, self._function, is_in_while=self._loops > 0))

    # -- statements

    def _block(self) -> None:
        while self._next not in _ENDS_OF_BLOCKS:
            self._statement()

    def _statement(self) -> None:
        start, word = self._start, self._next
        if word in ("local", "return", "break", "if", "while", "repeat", "for", "do"):
            getattr(self, f"_{word}")()
            self._add(word, start)
            return
        self._expression()
        while self._next == ",":
            self._take(",")
            self._expression()
        if self._next == "=":
            self._take("=")
            self._expressions()
            self._add("assign", start)
        else:
            self._add("statement", start)

    def _local(self) -> None:
        self._take("local")
        if self._next == "function":
            self._take("function")
            name = self._take()
            outer, self._function = self._function, self._function or name
            self._body()
            self._function = outer
            return
        while self._take() and self._next == ",":
            self._take(",")
        if self._next == "=":
            self._take("=")
            self._expressions()

    def _return(self) -> None:
        self._take("return")
        if self._next not in _ENDS_OF_BLOCKS:
            self._expressions()

    def _break(self) -> None:
        self._take("break")

    def _do(self) -> None:
        self._take("do")
        self._block()
        self._take("end")

    def _if(self) -> None:
        keyword = self._take("if")
        while True:
            self._condition(keyword)
            self._take("then")
            self._block()
            keyword = self._take("elseif", "else", "end")
            if keyword != "elseif":
                break
        if keyword == "else":
            self._block()
            self._take("end")

    def _while(self) -> None:
        self._loops += 1
        self._condition(self._take("while"))
        self._do()
        self._loops -= 1

    def _repeat(self) -> None:
        self._loops += 1
        self._take("repeat")
        self._block()
        self._condition(self._take("until"))
        self._loops -= 1

    def _for(self) -> None:
        self._take("for")
        while self._take() not in ("=", "in"):
            pass
        self._expressions()
        self._do()

    def _condition(self, keyword: str) -> None:
        start = self._start
        self._expression()
        self._add("condition", start, word=keyword)

    def _body(self) -> None:
        """Of a function: its parameters and its block."""
        self._take("(")
        while self._take() != ")":
            pass
        loops, self._loops = self._loops, 0
        self._block()
        self._loops = loops
        self._take("end")

    # -- expressions

    def _expressions(self) -> list[Span]:
        found = [self._expression()]
        while self._next == ",":
            self._take(",")
            found.append(self._expression())
        return found

    def _expression(self, strength: int = 0) -> Span:
        start = self._start
        if self._next in ("not", "-", "#"):
            self._take()
            self._expression(_STRENGTH_OF_UNARY)
        else:
            self._operand()
        left = Span(start, self._end)
        while _STRENGTHS.get(self._next, 0) > strength:
            operator = self._take()
            is_right = operator in ("..", "^")
            right = self._expression(_STRENGTHS[operator] - is_right)
            self._add("binary", start, left, right, word=operator)
            left = Span(start, self._end)
        return left

    def _operand(self) -> None:
        start, word, kind = self._start, self._next, self._tokens[self._place][2]
        if word == "function":
            self._take()
            self._body()
        elif word == "{":
            self._table()
        elif word == "(":
            self._take()
            self._expression()
            self._take(")")
        else:
            assert kind in ("text", "number", "name") or word == "...", f"{word!r}: {self.source[start:][:80]!r}"
            self._take()
            if kind in ("text", "number"):
                self._add(kind, start)
        self._suffixes(start)

    def _suffixes(self, start: int) -> None:
        while self._next in ("(", "[", ".", ":"):
            called = self.source[start : self._end]
            if self._take() == "(":
                arguments = [] if self._next == ")" else self._expressions()
                self._take(")")
                self._add("call", start, *arguments, word=called)
            elif self._tokens[self._place - 1][0] == "[":
                self._expression()
                self._take("]")
            else:
                self._take()

    def _table(self) -> None:
        start, fields = self._start, list[Span]()
        self._take("{")
        while self._next != "}":
            first = self._start
            if self._next == "[":
                self._take()
                self._expression()
                self._take("]")
                self._take("=")
            elif self._tokens[self._place + 1][0] == "=":
                self._take()
                self._take("=")
            self._expression()
            fields.append(Span(first, self._end))
            if self._next != "}":
                self._take(",", ";")
        self._take("}")
        self._add("table", start, *fields)


def _tokens(source: str) -> Iterator[tuple[str, Span, str]]:
    place = 0
    while place < len(source):
        token = _TOKEN.match(source, place)
        assert token, f"not understood: {source[place:][:80]!r}"
        place = token.end()
        if token.lastgroup != "space":
            yield token[0], Span(token.start(), token.end()), str(token.lastgroup)
