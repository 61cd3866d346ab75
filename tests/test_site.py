"""docs/site/check.py finds what is wrong with a built site. `make docs` runs it on the real one."""

import subprocess
import sys

import pytest

from tests.markdown import ROOT

CHECK = ROOT / "docs/site/check.py"
INDEX = '<h1 id="top">One</h1> <a href="folder/two.html#second">two</a> <a href="https://example.com">other</a>'
TWO = '<h1 id="second">Two</h1> <a href="../index.html">one</a> <a href="#second">here</a>'


@pytest.fixture
def site(tmp_path):
    """A site of two pages without a fault."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "folder/two.html").write_text(TWO)
    return tmp_path


def check(site):
    """The exit code and what it printed."""
    ran = subprocess.run([sys.executable, CHECK, site], capture_output=True, text=True, timeout=60, check=False)
    assert not ran.stderr
    return ran.returncode, ran.stdout


def test_a_site_without_a_fault_passes(site):
    assert check(site) == (0, "site: links, anchors and sizes are right\n")


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ('<a href="nowhere.html">x</a>', "no file nowhere.html"),
        ('<a href="folder/">x</a>', "no file folder/"),
        ('<a href="folder/two.html#third">x</a>', "no anchor folder/two.html#third"),
        ('<a href="#third">x</a>', "no anchor #third"),
        ('<img src="missing.png">', "no file missing.png"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js from another host"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "loads //cdn.example/x.css from another host"),
        ("x" * 100_000, "bytes, more than 100,000"),
    ],
)
def test_a_fault_is_named(site, html, message):
    (site / "index.html").write_text(INDEX + html)

    code, said = check(site)

    assert code == 1
    assert said.startswith("index.html: ")
    assert said.endswith(f"{message}\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("lonely.html", '<a href="index.html">one</a>', "no page leads to it"),
        (
            "site.css",
            "@import url(https://fonts.example/x.css);",
            "loads https://fonts.example/x.css from another host",
        ),
    ],
)
def test_a_file_with_a_fault_is_named(site, name, text, message):
    (site / name).write_text(text)
    assert check(site) == (1, f"{name}: {message}\n")
