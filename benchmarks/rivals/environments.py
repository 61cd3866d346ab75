"""A virtual environment for each contender, in the folder .venv-rivals."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.environment import ROOT, print_progress
from benchmarks.rivals.contenders import DATABASE_PACKAGES, Contender

FOLDER = ROOT / ".venv-rivals"
QUIET = ("--quiet", "--disable-pip-version-check")


class NotInstalled(RuntimeError):
    """pip could not install a contender."""


def python_of(name: str, contender: Contender, python: str) -> Path:
    """The interpreter of its environment, which is created with that Python if needed. Raises NotInstalled."""
    folder = FOLDER / name
    interpreter, stamp = folder / "bin" / "python", folder / "installed"
    packages = [*contender.packages, *DATABASE_PACKAGES]
    if stamp.exists() and stamp.read_text() == " ".join(packages):
        return interpreter
    print_progress(f"installing {contender.title}")
    pip = [interpreter, "-m", "pip", "install", *QUIET, *packages]
    try:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True, capture_output=True)
        subprocess.run(pip, check=True, cwd=ROOT, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise NotInstalled(f"{contender.title}: {error.stderr}") from error
    stamp.write_text(" ".join(packages))
    return interpreter


def versions(interpreter: Path) -> dict[str, str]:
    """The installed packages and their versions."""
    freeze = [interpreter, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    lines = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def version_of(python: str) -> str:
    """Such as 3.12.1."""
    return subprocess.run([python, "-V"], check=True, capture_output=True, text=True).stdout.split()[-1]
