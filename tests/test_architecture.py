"""The pages for contributors name what exists, and the picture of the packages is up to date."""

import ast
import re

import pytest

from docs import diagram
from tests.markdown import ROOT, read, section


def paths_in(text):
    """What a page names as a file or folder of the repository."""
    return re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|lua|md|toml|svg|js|css)|(?:[\w.-]+/)+)`", text)


def test_the_architecture_page_names_files_that_exist():
    for path in paths_in(read("docs/architecture.md")):
        assert (ROOT / path).exists() or (ROOT / "django_rtq" / path).exists(), path


def test_the_contributing_page_names_every_package_and_module_of_the_top_level():
    packages = section(read("CONTRIBUTING.md"), "## Packages")
    for path in (ROOT / "django_rtq").iterdir():
        is_package = path.is_dir() and any(path.glob("*.py")) and path.name not in ("migrations", "templatetags")
        if is_package or (path.suffix == ".py" and path.stem != "__init__"):
            assert f"`{path.name}{'/' if is_package else ''}`" in packages, path.name


def test_the_contributing_page_names_files_and_make_targets_that_exist():
    text = read("CONTRIBUTING.md")
    for path in paths_in(text):
        assert (ROOT / path).exists() or (ROOT / "django_rtq" / path).exists(), path
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))


def test_the_glossary_is_in_order():
    words = re.findall(r"^- \*\*(.*?)\*\*: ", section(read("docs/architecture.md"), "## Glossary"), re.M)
    assert len(words) >= 40
    assert words == sorted(words)


def test_the_picture_of_the_packages_is_up_to_date():
    assert diagram.PICTURE.read_text() == diagram.draw(), "run: make diagram"


def imports_of(path, modules):
    """The modules of the package that a module imports anywhere: for types and inside of functions, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in modules else node.module


@pytest.mark.long
def test_no_modules_import_each_other_in_a_circle():
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "django_rtq").rglob("*.py")
    }
    left = {name: set(imports_of(path, paths)) & paths.keys() - {name} for name, path in paths.items()}
    assert len(left) > 200
    while free := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in free}

    assert sorted(left) == []  # these import each other, or what does


def test_ci_names_folders_of_tests_that_exist():
    named = re.findall(r"\btests/[a-z/]+(?=\s)", (ROOT / ".ci" / "run").read_text())
    assert named
    assert [path for path in named if not (ROOT / path / "__init__.py").exists()] == []
