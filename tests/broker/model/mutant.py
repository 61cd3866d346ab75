"""A mutant, a script with one plausible mistake, and how it is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple
from unittest import mock

from django_rtq.broker import scripts
from django_rtq.broker.redis.commands import SCRIPTS_BY_SHA, LuaScript
from django_rtq.broker.scripts import SCRIPTS, Script


class Mutant(NamedTuple):
    """In every script, or only in some: `old` is there once, and becomes `new`."""

    name: str
    old: str
    new: str
    only: tuple[str, ...] = ()


NOTHING = ""  # a text that is removed


@contextmanager
def mutated(mutant: Mutant) -> Iterator[None]:
    """Meanwhile, the broker uses the wrong scripts."""
    names = [name for name in mutant.only or SCRIPTS if mutant.old in _files_of(name)]
    right = {name: SCRIPTS[name] for name in names}
    wrong = {name: script for name in names if (script := _wrong(right[name], mutant)).text != right[name].text}
    assert wrong, f"{mutant.name}: no script has {mutant.old!r} any more"
    SCRIPTS.update(wrong)
    SCRIPTS_BY_SHA.update({script.sha: LuaScript(script.name, script.text) for script in wrong.values()})
    try:
        yield
    finally:
        SCRIPTS.update(right)
        for script in wrong.values():
            del SCRIPTS_BY_SHA[script.sha]


@cache
def _files_of(name: str) -> str:
    source = SCRIPTS[name]._source
    return "\n".join([*scripts._parts(source).values(), source])


def _wrong(script: Script, mutant: Mutant) -> Script:
    """The script, made of files in which the mutant has replaced its text. The same if it uses none of that."""
    right = scripts._read

    def read(folder: str, name: str) -> str:
        text = right(folder, name)
        assert text.count(mutant.old) <= 1, f"{mutant.name}: {name}.lua has it several times"
        return text.replace(mutant.old, mutant.new)

    wrong = Script(script.name, script._folder)
    with mock.patch.object(scripts, "_read", read):
        wrong.text  # noqa: B018 - made of the files
    return wrong
