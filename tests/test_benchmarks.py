"""The benchmarks import what there is. They run for minutes, and not in these tests."""

import ast
import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
MODULES = [path for path in sorted(FOLDER.rglob("*.py")) if ".venv" not in str(path)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_what_is_imported_of_the_package_exists(path):
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if (node.module or "").startswith("django_rtq")]

    for node in ours:
        module = importlib.import_module(node.module)
        for alias in node.names:
            assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")
