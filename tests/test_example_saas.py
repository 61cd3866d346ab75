"""The product in examples/saas: its tests pass, its tables have migrations, and it deploys commands that exist."""

import re

import pytest
from django.core.management import load_command_class

from tests.markdown import ROOT
from tests.support.projects import run_python

pytestmark = pytest.mark.long

FOLDER = ROOT / "examples/saas"
DEPLOYED = [*FOLDER.glob("deploy/*.service"), FOLDER / "deploy/compose.yml"]
WITH_UNITS = [*FOLDER.glob("deploy/*.service"), ROOT / "docs/tutorial.md", ROOT / "docs/how-to/run-workers.md"]


def manage(tmp_path, *arguments, **variables):
    """Run its manage.py. Returns the exit code and what it printed."""
    return run_python(FOLDER, "manage.py", *arguments, SAAS_DATA_DIR=str(tmp_path), **variables)


def test_its_own_tests_pass(tmp_path):
    pytest.importorskip("fakeredis")
    code, said = manage(tmp_path, "test")
    assert code == 0, said
    assert int(re.search(r"Ran (\d+) tests", said)[1]) >= 8


def test_its_tables_have_migrations(tmp_path):
    assert manage(tmp_path, "makemigrations", "--check", "--dry-run") == (0, "No changes detected\n")


def test_it_has_no_problem_in_production(tmp_path):
    production = {
        "SAAS_DEBUG": "0",
        "SAAS_SECRET_KEY": "a long one, of more than fifty characters: 0123456789 abcdefghij",
        "SAAS_REDIS_URL": "redis://127.0.0.1:1/0",
    }
    code, said = manage(tmp_path, "check", "--deploy", **production)
    assert code == 0, said
    assert set(re.findall(r"\((\w+\.\w+)\)", said)) <= {"security.W004"}, said  # HSTS is for the proxy to say


def commands(text):
    """The commands of manage.py in a unit or a compose file, as lists of arguments."""
    lists = re.findall(r"\[python, manage\.py, ([^\]]*)\]", text)
    lines = re.findall(r"python manage\.py (rtq_[^&\n#]*)", text)
    return [re.sub(r'[",]+ |"', " ", found).split() for found in [f"{found} " for found in lists]] + [
        line.split() for line in lines
    ]


@pytest.mark.parametrize("path", DEPLOYED, ids=lambda path: path.name)
def test_what_it_deploys_are_commands_with_options_that_exist(path):
    for name, *arguments in commands(path.read_text()):
        load_command_class("django_rtq", name).create_parser("manage.py", name).parse_args(arguments)


def test_it_deploys_workers_for_all_of_its_queues():
    for paths in ([FOLDER / "deploy/compose.yml"], FOLDER.glob("deploy/*.service")):
        found = [words for path in paths for words in commands(path.read_text()) if words[0] == "rtq_worker"]
        queues = {queue for words in found for queue in words[words.index("--queues") + 1].split(",")}
        assert queues == {"default", "bank", "mail"}


@pytest.mark.parametrize("path", WITH_UNITS, ids=lambda path: path.name)
def test_systemd_starts_its_units_again_for_ever(path):
    """By default it gives up after five starts in ten seconds."""
    text = path.read_text()
    assert text.count("Restart=always") == 1
    assert int(re.search(r"^RestartSec=(\d+)$", text, re.MULTILINE)[1]) > 10 / 5
