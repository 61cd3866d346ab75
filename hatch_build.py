"""What is made when packages are built, and is not in git: addresses in the metadata, and compiled translations."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import polib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parent


class AddressHook(MetadataHookInterface):
    """Called by hatchling for the metadata. Where the repository is, is said once, in pyproject.toml."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        if repository := self.config["repository"]:
            version = f"v{metadata['version']}"
            metadata["urls"] = {
                "Documentation": f"{repository}/blob/{version}/docs/index.md",
                "Changelog": f"{repository}/blob/{version}/CHANGELOG.md",
                "Source": repository,
                "Issues": f"{repository}/issues",
            }
            text = with_addresses(text, repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_addresses(text: str, repository: str, version: str) -> str:
    """A page of the repository for readers elsewhere: its links and pictures lead to those of that version."""
    text = re.sub(r"\]\((?![a-z]+:|#)", f"]({repository}/blob/{version}/", text)
    return re.sub(r'((?:src|srcset)=")(?![a-z]+:)', rf"\1{repository}/raw/{version}/", text)


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
