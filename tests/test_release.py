""".ci/release.py makes a release in a small repository, or refuses it and changes nothing."""

import shutil
import subprocess
import sys
from datetime import datetime, timezone

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.long

CHANGELOG = """# Changelog

## Unreleased

### Added

- A door.

## 0.1.0 - 2026-01-02

- The house.
"""
# What the targets do is tested elsewhere. They read the version, so they run after it was written.
MAKEFILE = """
format-check lint types docs:
\t@echo "$@ of $$(cat django_rtq/__init__.py)"
dist:
\t@mkdir -p dist && touch dist/django_rtq-0.2.0-py3-none-any.whl dist/django_rtq-0.2.0.tar.gz
matrix:
\t@echo "SKIPPED [2] tests/test_a.py:7: PostgreSQL: no server"
\t@echo "  py310-django52: OK (1.2=setup[0.1]+cmd[1.1] seconds)"
\t@echo "  py314-django61: SKIP (0.01 seconds)"
\t@echo "  valkey-9.1: SKIP (this machine is no Debian)"
"""


class Repository:
    """A repository with what the script looks at."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "django_rtq").mkdir()
        (folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/release.py", folder / ".ci/release.py")
        (folder / "django_rtq/__init__.py").write_text('"""Queues."""\n\n__version__ = "0.1.0"\n')
        (folder / "CHANGELOG.md").write_text(CHANGELOG)
        (folder / "Makefile").write_text(MAKEFILE)
        (folder / ".gitignore").write_text("dist/\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "A maintainer")
        self.git("config", "user.email", "maintainer@example.org")
        self.commit()
        self.git("tag", "v0.1.0")

    def git(self, *arguments):
        command = ["git", "-C", self.folder, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    def commit(self):
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "Build a house")

    def release(self, *arguments, folder=None):
        """Exit code, and what it printed."""
        command = [sys.executable, (folder or self.folder) / ".ci/release.py", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_release_is_checked_committed_tagged_and_not_pushed(repository):
    code, said = repository.release("0.2.0")

    assert code == 0, said
    assert 'types of """Queues."""\n\n__version__ = "0.2.0"\n' in said
    assert repository.git("describe", "--exact-match") == "v0.2.0"
    assert repository.git("cat-file", "-t", "v0.2.0") == "tag"
    assert repository.git("log", "-1", "--format=%s") == "Release 0.2.0"
    assert not repository.git("status", "--porcelain")
    today = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    written = (repository.folder / "CHANGELOG.md").read_text()
    assert f"## Unreleased\n\n## 0.2.0 - {today}\n\n### Added\n\n- A door.\n\n## 0.1.0 - 2026-01-02\n" in written
    assert "  not tested: PostgreSQL: no server\n" in said
    assert "  not tested: py314-django61: SKIP\n" in said
    assert "  not tested: valkey-9.1: SKIP\n" in said
    assert "git push origin HEAD v0.2.0" in said

    code, said = repository.release("0.3.0")
    assert (code, said) == (1, '\nno release: nothing is under "Unreleased" in CHANGELOG.md.\n')


@pytest.mark.parametrize("target", ["types", "docs", "dist", "matrix"])
def test_a_step_that_fails_leaves_everything_as_it_was(repository, target):
    makefile = repository.folder / "Makefile"
    makefile.write_text(f"{MAKEFILE}\n{target}: broken\nbroken:\n\t@false\n")
    repository.commit()

    code, said = repository.release("0.2.0")

    assert code == 1
    assert f"no release: make {'format-check' if target == 'types' else target} failed." in said
    assert not repository.git("status", "--porcelain")
    assert repository.git("tag") == "v0.1.0"


def test_packages_of_another_version_are_refused(repository):
    code, said = repository.release("0.2.1")

    assert code == 1
    assert "dist/ has django_rtq-0.2.0-py3-none-any.whl, django_rtq-0.2.0.tar.gz: no packages of 0.2.1." in said
    assert not repository.git("status", "--porcelain")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ((), "Say which version: make release VERSION=0.2.0"),
        (("two",), "'two' is no version, such as 0.2.0 or 0.2.0rc1."),
        (("0.2",), "'0.2' is no version, such as 0.2.0 or 0.2.0rc1."),
        (("v0.2.0",), "'v0.2.0' is no version, such as 0.2.0 or 0.2.0rc1."),
        (("0.1.0",), "0.1.0 is not newer than 0.1.0, which has a tag."),
        (("0.1.0rc1",), "0.1.0rc1 is not newer than 0.1.0, which has a tag."),
    ],
)
def test_a_version_that_cannot_be_next_is_refused(repository, version, message):
    assert repository.release(*version) == (1, f"\nno release: {message}\n")


def test_a_tree_with_changes_is_refused(repository):
    (repository.folder / "new.py").write_text("")
    assert repository.release("0.2.0") == (1, "\nno release: the tree is not clean: see git status.\n")


def test_a_clone_without_history_is_refused(repository, tmp_path_factory):
    clone = tmp_path_factory.mktemp("clone")
    repository.git("commit", "--quiet", "--allow-empty", "--message", "Paint it")
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.folder}", clone)
    code, said = repository.release("0.2.0", folder=clone)
    assert (code, "git fetch --unshallow --tags" in said) == (1, True)
