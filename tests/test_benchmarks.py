"""The benchmarks import what there is. They run for minutes, and but for the walk over all pages not in these tests."""

import ast
import importlib
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks import instructions
from benchmarks.instructions import BASELINE, more_than
from tests.protocol.model.script_calls import SCRIPT_CALLS
from tests.support.nightly import IS_NIGHTLY

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


def test_scripts_that_take_more_instructions_are_named():
    assert more_than({"claim": 100, "finish": 100, "gone": 1}, {"claim": 105, "finish": 106, "new": 9}) == ["finish"]
    assert set(SCRIPT_CALLS) >= json.loads(BASELINE.read_text())["scripts"].keys() >= {"claim", "settle", "enqueue"}


def test_scenes_that_take_3_percent_more_of_python_fail(monkeypatch, capsys):
    counted = {"delay()": 1000}
    monkeypatch.setattr(instructions, "count_scenes", lambda: dict(counted))
    baseline = {"python": {}}

    assert instructions.examine_scenes(baseline, Namespace(write=True, check=False))
    for more, is_fine in ((1030, True), (1031, False)):
        counted["delay()"] = more
        assert instructions.examine_scenes(baseline, Namespace(write=False, check=True)) is is_fine
    assert "delay(): 1,031 instructions, and it took 1,000" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.skipif(not IS_NIGHTLY, reason="it takes half a minute")
def test_the_walk_over_all_pages_runs_in_a_small_installation(tmp_path):
    costs, figures = ["-m", "benchmarks.costs", "--size", "0.0005", "--repeats", "1"], tmp_path / "costs.json"
    only = ["--only", "tasks", "dead letters", "rtq_queues", "--json", str(figures)]

    ended = subprocess.run(
        [sys.executable, *costs, *only], cwd=FOLDER.parent, capture_output=True, text=True, check=True
    )

    found = {name: first for name, (first, _again) in json.loads(figures.read_text()).items()}
    assert list(found) == ["dead letters", "tasks", "rtq_queues list", "rtq_tasks list"]
    assert all(cost["commands"] > 0 and cost["web_ms"] > 0 for cost in found.values())
    assert found["tasks"]["kb"] > 30  # fifty tasks
    assert "The longest scripts" in ended.stdout
