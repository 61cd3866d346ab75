"""A test that fails is run once more alone, and both results are reported. See tests/support/second_try.py."""

import pytest

from tests.support.projects import run_python

pytestmark = pytest.mark.long

CONFTEST = "from tests.support.second_try import register as pytest_configure"
TESTS = """
from pathlib import Path
import pytest

def test_passes():
    pass

@pytest.mark.parametrize("which", ["[odd] id"])
def test_fails_first(which):
    seen = Path("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first

@pytest.fixture
def broken():
    yield
    raise OSError

def test_fails_always(broken):
    assert False
"""
UNSTABLE, BROKEN = "test_it.py::test_fails_first[[odd] id]", "test_it.py::test_fails_always"


@pytest.fixture
def run(tmp_path):
    """Runs pytest on TESTS: (exit code, output, lines of the file of unstable tests)."""
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    file = tmp_path / "unstable"

    def run(*arguments, **environment):
        options = {"RTQ_SECOND_TRY": str(file), **environment}
        code, output = run_python(tmp_path, "-m", "pytest", "-q", "-pxdist", *arguments, **options)
        return code, output, file.read_text().splitlines() if file.exists() else []

    return run


def test_what_passes_alone_is_named_and_does_not_fail_the_run(run):
    code, output, unstable = run("-n2", "-k", "not always")

    assert code == 0
    assert unstable == [UNSTABLE]
    assert "1 failed, 1 passed" in output
    assert UNSTABLE in output.partition("failed, then passed alone")[2]


def test_what_fails_twice_fails_the_run(run):
    code, output, unstable = run("-n0")

    assert code == 1
    assert unstable == [UNSTABLE]
    assert f"failed twice: {BROKEN}" in output
    assert output.count("OSError") > output.partition("failed twice")[0].count("OSError") > 0


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["-n0", "-x"], {}), (["-n0"], {"RTQ_SECOND_TRY": ""})],
    ids=["the rest was not run", "nobody asked for it"],
)
def test_it_is_not_tried_again(run, arguments, environment):
    code, output, unstable = run("-k", "not always", *arguments, **environment)

    assert (code, unstable) == (1, [])
    assert "then passed" not in output


def test_an_error_outside_of_tests_still_fails_the_run(run, tmp_path):
    (tmp_path / "test_other.py").write_text("import nosuchmodule")
    code, output, _ = run("-n0", "--continue-on-collection-errors", "-k", "not always")

    assert code == 1
    assert "nosuchmodule" in output
