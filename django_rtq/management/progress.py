"""The line on stderr that shows how far a long command is."""

from __future__ import annotations

from django.core.management.base import OutputWrapper

from django_rtq.management.printable import number

LINE_EVERY = 5000  # where lines cannot be overwritten, as in a log file: one for so many


class ProgressLine:
    """Shows a number that grows. Use it as a context; it is silent unless there is something to wait for."""

    def __init__(self, out: OutputWrapper, text: str, total: int | None = None, *, shown: bool = True) -> None:
        self._out = out
        self._text = text
        self._of_total = "" if total is None else f" of {number(total)}"
        self._shown = shown
        self._redraws = out.isatty()
        self._width = 0
        self._next = LINE_EVERY

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._width:
            self._write(f"\r{' ' * self._width}\r", ending="")
            self._width = 0

    def show(self, done: int) -> None:
        """Say that so many are done. It may be called as often as one likes."""
        if not self._shown:
            return
        line = f"{self._text}: {number(done)}{self._of_total}"
        if self._redraws:
            self._write(f"\r{line:<{self._width}}", ending="")
            self._width = len(line)
        elif done >= self._next:
            self._write(line, ending="\n")
            self._next = done - done % LINE_EVERY + LINE_EVERY

    def _write(self, text: str, *, ending: str) -> None:
        # With a style of its own, because what goes to stderr is red otherwise.
        self._out.write(text, style_func=str, ending=ending)
        self._out.flush()
