"""The wheel and the source distribution have all files of the package, and no others."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import django_rtq
import hatch_build

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
VERSION = django_rtq.__version__
LUA = sorted((ROOT / "django_rtq").rglob("*.lua"))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with the wheel and the sdist of this tree."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: wheel and sdist are NOT checked")
    folder = tmp_path_factory.mktemp("shelf")
    program = (
        "import sys; from hatchling.build import build_sdist as s, build_wheel as w; [f(sys.argv[1]) for f in (s, w)]"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], cwd=ROOT, check=True, timeout=60)
    return folder


def sources():
    """The files of the package, as git would have them."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "django_rtq").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture
def wheel(shelf):
    with zipfile.ZipFile(shelf / f"django_rtq-{VERSION}-py3-none-any.whl") as wheel:
        yield wheel


# What is in the wheel: kinds of files, and where. Python code is everywhere.
KINDS = {
    **{f"django_rtq/{part}/lua": {".lua"} for part in ("core/broker", "limits", "workflows", "console")},
    "django_rtq/locale": {".mo"},
    "django_rtq/static": {".css", ".js"},
    "django_rtq/templates": {".html"},
    "django_rtq": {".py", ".typed"},
}


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert names == {name for name in sources() if not name.endswith((".po", ".md"))}
    for name in names:
        kinds = next(kinds for folder, kinds in KINDS.items() if name.startswith(f"{folder}/"))
        assert Path(name).suffix in kinds, name
    assert "django_rtq/py.typed" in names
    assert len([name for name in names if name.endswith(".mo")]) == 2
    assert len([name for name in names if name.endswith(".lua")]) == len(LUA) > 20


def test_the_wheel_is_small(shelf):
    assert (shelf / f"django_rtq-{VERSION}-py3-none-any.whl").stat().st_size <= 1_100_000


def test_packages_name_no_address_that_nobody_has_entered(wheel):
    assert "\nProject-URL: " not in wheel.read(f"django_rtq-{VERSION}.dist-info/METADATA").decode()


def test_the_address_of_the_repository_is_entered_once():
    entered = {"repository": "https://git.example/us/django_rtq"}
    metadata = {"version": "1.2.3"}

    hatch_build.AddressHook(str(ROOT), entered).update(metadata)

    assert metadata["urls"]["Source"] == "https://git.example/us/django_rtq"
    assert metadata["urls"]["Changelog"] == "https://git.example/us/django_rtq/blob/v1.2.3/CHANGELOG.md"
    readme = metadata["readme"]["text"]
    assert "](https://git.example/us/django_rtq/blob/v1.2.3/docs/why.md)" in readme
    assert 'src="https://git.example/us/django_rtq/raw/v1.2.3/docs/images/' in readme
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text()))
    assert all(link.startswith(("https://", "#")) for link in links)


def test_the_wheel_names_its_needs_and_its_licence(wheel):
    info = f"django_rtq-{VERSION}.dist-info"
    metadata = wheel.read(f"{info}/METADATA").decode()

    assert f"\nVersion: {VERSION}\n" in metadata
    assert "\nRequires-Python: >=3.10\n" in metadata
    assert "\nLicense-Expression: BSD-3-Clause\n" in metadata
    for need in ("django>=5.2", "redis>=5.0"):
        assert f"\nRequires-Dist: {need}\n" in metadata
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_the_wheel_names_the_pytest_plugin(wheel):
    declared = wheel.read(f"django_rtq-{VERSION}.dist-info/entry_points.txt").decode()

    assert declared.split() == ["[pytest11]", "rtq", "=", "django_rtq.pytest_plugin"]


def test_the_sdist_holds_all_that_a_wheel_is_built_of(shelf):
    with tarfile.open(shelf / f"django_rtq-{VERSION}.tar.gz") as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}

    sources_in_git = {name for name in sources() if not name.endswith(".mo")}
    assert sources_in_git | {"hatch_build.py"} | {"pyproject.toml", "LICENSE", "README.md", "PKG-INFO"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".rdb", ".sqlite3"))]


def test_it_can_be_imported_without_settings():
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}

    done = subprocess.run(
        [sys.executable, "-c", "import django_rtq; print(django_rtq.__version__)"],
        check=True,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.stdout.strip(), done.stderr) == (VERSION, "")


def test_what_was_installed_finds_its_scripts(wheel, tmp_path):
    wheel.extractall(tmp_path)
    program = (
        "import django_rtq.core.broker.scripts as s; print(s.__file__, len(s.SCRIPTS), "
        "len(s.SCRIPTS['claim'].text) > 1000)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    public = [path for path in LUA if path.parent.name != "lib"]
    assert done.stdout.split() == [str(tmp_path / "django_rtq/core/broker/scripts.py"), str(len(public)), "True"]
