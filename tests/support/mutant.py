"""Changed scripts: mutants, which have one plausible mistake, and scripts with other limits."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple
from unittest import mock

from django_rtq.core.broker import scripts
from django_rtq.core.broker.redis.commands import SCRIPTS_BY_SHA
from django_rtq.core.broker.scripts import SCRIPTS, Script

FILES = {
    file.relative_to(folder).with_suffix("").as_posix(): file.read_text()
    for folder in scripts.LUA
    for file in sorted(folder.rglob("*.lua"))
}


class Mutant(NamedTuple):
    """One text in one file becomes another."""

    name: str
    file: str  # as in "claim", "lib/turns", "queries/find_job"
    old: str
    new: str

    @property
    def source(self) -> str:
        """Of the file, with the mistake."""
        assert FILES[self.file].count(self.old) == 1, f"{self.name}: {self.file}.lua has not once {self.old!r}"
        return FILES[self.file].replace(self.old, self.new)


@contextmanager
def changed(sources: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile, the broker uses scripts that are made of these files.

    All that is known here of how scripts are made of files, and of how they get to Redis.
    """
    names = [name for name in SCRIPTS if not sources.keys().isdisjoint(files_of(name))]
    assert names, f"no script uses {', '.join(sources)}"
    right = {name: SCRIPTS[name] for name in names}
    wrong = {name: _made_of(script, sources) for name, script in right.items()}
    SCRIPTS.update(wrong)
    SCRIPTS_BY_SHA.update({script.sha: script for script in wrong.values()})
    try:
        yield
    finally:
        SCRIPTS.update(right)
        for script in wrong.values():
            SCRIPTS_BY_SHA.pop(script.sha, None)
        SCRIPTS_BY_SHA.update({script.sha: script for script in right.values()})


def mutated(mutant: Mutant) -> AbstractContextManager[None]:
    """Meanwhile, the broker uses the wrong scripts."""
    return changed({mutant.file: mutant.source})


def files_of(name: str) -> list[str]:
    """The files that a script is made of."""
    script = SCRIPTS[name]
    own = f"{script._folder}/{name}".lstrip("/")
    return [own, *(f"lib/{part}" for part in scripts._parts(FILES[own]))]


def _made_of(script: Script, sources: Mapping[str, str]) -> Script:
    right = scripts._read

    def read(folder: str, name: str) -> str:
        return sources.get(f"{folder}/{name}".lstrip("/")) or right(folder, name)

    made = Script(script.name, script._folder)
    with mock.patch.object(scripts, "_read", read):
        made.text, made.needs_worker  # noqa: B018 - made of the files
    return made


#: Scripts read the key `clock` instead of the time of the server.
OWN_CLOCK = Mutant(
    "own_clock",
    "lib/prelude",
    'redis.call("TIME")',
    '{ math.floor(redis.call("GET", "clock") / 1000), redis.call("GET", "clock") % 1000 * 1000 }',
)
