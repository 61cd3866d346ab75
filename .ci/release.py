"""Makes a release: `make release VERSION=0.2.0`. Checks everything, commits and tags, and pushes nothing.

1. is the version newer than all tags, the tree clean, and something to release under "Unreleased" in CHANGELOG.md?
2. write the version, and the changelog's section with the date of today
3. style, types, docs, the tests on each Python and Django, the packages
4. commit, tag, say what was not tested and what is left to do

If a step fails, the files are as before.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
INIT = ROOT / "django_rtq" / "__init__.py"
UNRELEASED = "## Unreleased\n"

# In the order of their length. -rs: pytest names the tests that it skips, with the reason.
STEPS = (["format-check", "lint", "types"], ["docs"], ["dist"], ["matrix", "ARGS=-- -q -rs"])


class Refused(Exception):
    """There will be no release. The message says why."""


def main(arguments: list[str]) -> int:
    try:
        if len(arguments) != 1:
            raise Refused("Say which version: make release VERSION=0.2.0")
        release(arguments[0])
    except Refused as refusal:
        print(f"\nno release: {refusal}", file=sys.stderr)
        return 1
    return 0


def release(version: str) -> None:
    check_version(version)
    if git("status", "--porcelain"):
        raise Refused("the tree is not clean: see git status.")
    texts = {CHANGELOG: CHANGELOG.read_text(), INIT: INIT.read_text()}
    CHANGELOG.write_text(dated(texts[CHANGELOG], version, f"{datetime.now(timezone.utc):%Y-%m-%d}"))
    INIT.write_text(re.sub(r'^__version__ = ".*"$', f'__version__ = "{version}"', texts[INIT], flags=re.M))
    try:
        untested = [reason for targets in STEPS for reason in make(targets)]
        check_packages(version)
        git("commit", "--quiet", "--message", f"Release {version}", "--", *map(str, texts))
    except BaseException:  # also Ctrl-C
        for path, text in texts.items():
            path.write_text(text)
        raise
    git("tag", "--annotate", f"v{version}", "--message", f"django_rtq {version}")
    report(version, untested)


def check_version(text: str) -> None:
    """Raises Refused unless it is the next version, as in 0.2.0 or 1.0.0rc1."""
    try:
        version = Version(text)
    except InvalidVersion:
        raise Refused(f"{text!r} is no version, such as 0.2.0 or 0.2.0rc1.") from None
    if str(version) != text or len(version.release) != 3 or version.is_devrelease or version.is_postrelease:
        raise Refused(f"{text!r} is no version, such as 0.2.0 or 0.2.0rc1.")
    if git("rev-parse", "--is-shallow-repository") == "true":
        raise Refused("this clone has no full history, and perhaps not all tags. Run: git fetch --unshallow --tags")
    released = [Version(tag[1:]) for tag in git("tag", "--list", "v[0-9]*").split()]
    if released and version <= max(released):
        raise Refused(f"{version} is not newer than {max(released)}, which has a tag.")


def dated(changelog: str, version: str, date: str) -> str:
    """The changelog with all that is unreleased under this version."""
    before, heading, after = changelog.partition(UNRELEASED)
    entries = re.split(r"^## ", after, maxsplit=1, flags=re.M)[0]
    if not heading or not re.search(r"^- ", entries, re.M):
        raise Refused('nothing is under "Unreleased" in CHANGELOG.md.')
    return f"{before}{UNRELEASED}\n## {version} - {date}\n{after}"


def make(targets: list[str]) -> set[str]:
    """Run make, and show its output. Returns what it could not run. Raises Refused if it fails."""
    # Without what the make that runs this has said, and without a choice of environments for tox: all are run.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "TOX"))}
    environment |= {"RTQ_DATABASES": "all", "PYTHONUNBUFFERED": "1"}
    command = ["make", "--no-print-directory", *targets]
    untested = set()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if skipped := re.match(r"SKIPPED \[\d+\] \S+ (.*)|\s*((?:py\d+|redis|valkey)-\S+: SKIP)", line):
                untested.add(skipped[1] or skipped[2])
    if process.returncode:
        raise Refused(f"make {targets[0]} failed.")
    return untested


def check_packages(version: str) -> None:
    """Raises Refused unless dist/ has the two packages of this version."""
    built = sorted(path.name for path in (ROOT / "dist").iterdir())
    if built != [f"django_rtq-{version}-py3-none-any.whl", f"django_rtq-{version}.tar.gz"]:
        raise Refused(f"dist/ has {', '.join(built)}: no packages of {version}.")


def report(version: str, untested: list[str]) -> None:
    print(f"\n{version} is committed and tagged, and nothing is pushed. Packages are in dist/.")
    for what in untested:
        print(f"  not tested: {what}")
    print(
        f"To publish it:\n  git push origin HEAD v{version}\n"
        f"To take it back:\n  git tag --delete v{version} && git reset --hard HEAD~1"
    )


def git(*arguments: str) -> str:
    """What git prints. Raises Refused with what it says if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
