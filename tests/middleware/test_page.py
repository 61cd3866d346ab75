"""The examples of the page about middleware run as tests of a project."""

import os
import re
import subprocess
import sys

from tests.markdown import ROOT, blocks, read
from tests.testing.test_page import SETTINGS
from tests.testing.test_project import plugin_options

PAGE = blocks(read("docs/middleware.md"))


def test_the_examples_pass(tmp_path):
    (tmp_path / "shop").mkdir()
    files = {"settings.py": SETTINGS, "shop/__init__.py": "", "conftest.py": "import shop.receivers\n"}
    for name, code in PAGE:
        files[name] = files.get(name, "") + code
    files["settings.py"] = files["settings.py"].replace("redis://localhost:6379/0", "redis://localhost:1/0")
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = settings\nfilterwarnings = error\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin_options()],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    tests = sum(len(re.findall(r"def test_", code)) for _, code in PAGE)
    assert f"{tests} passed" in done.stdout, done.stdout
