"""Compiles the translation catalogs when a wheel or an editable installation is built: no compiled file is in git."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent


class CatalogHook(BuildHookInterface[Any]):
    """Called by hatchling before it collects the files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel":  # of which an editable installation is a version
            compile_catalogs()


def compile_catalogs() -> None:
    """Write each `.mo` file that is missing or older than its source. Texts without a translation are left out."""
    for source in ROOT.glob("django_rtq/locale/*/LC_MESSAGES/*.po"):
        target = source.with_suffix(".mo")
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            unfinished = target.with_suffix(f".{os.getpid()}")  # others may compile or read it at this moment
            polib.pofile(str(source)).save_as_mofile(str(unfinished))
            unfinished.replace(target)


if __name__ == "__main__":
    compile_catalogs()
