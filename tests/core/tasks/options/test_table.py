"""Each option is declared once: what repeats its name has all of them. Adding one takes what CONTRIBUTING says."""

import re
import shutil
import subprocess
import sys

import pytest

from django_rtq.core.tasks import task
from django_rtq.core.tasks.options.types import CallOptions, SharedOptions, TaskOptions, UsingOptions
from django_rtq.core.tasks.task import OPTIONS, SHARED_NAMES, TASK_NAMES, USING_NAMES
from tests.markdown import ROOT, read, rows, section

pytestmark = pytest.mark.long

IN_OVERLOADS = {"takes_context", "batch"}  # of the decorator


@pytest.mark.parametrize(
    ("types", "names"),
    [
        (CallOptions, USING_NAMES & SHARED_NAMES),
        (UsingOptions, USING_NAMES),
        (SharedOptions, SHARED_NAMES),
        (TaskOptions, TASK_NAMES - IN_OVERLOADS),
    ],
)
def test_type_checkers_know_the_options_that_are_declared(types, names):
    missing, unknown = names - types.__optional_keys__, types.__optional_keys__ - names

    assert not missing, f"core/tasks/options/types.py: add {sorted(missing)} to {types.__name__}"
    assert not unknown, (
        f"core/tasks/options/types.py: {types.__name__} has {sorted(unknown)}, which Task does not declare"
    )


def test_tasks_of_django_tasks_have_the_options_that_are_declared():
    pytest.importorskip("django_rtq.backend.compat")
    from django_rtq.backend.rtq_task import RTQ_OPTIONS

    of_django = {"queue_name", "priority", "run_after", "takes_context"}
    without_use = {"name", "keep_args"}  # they have the name of their function, and always keep arguments
    without_use |= {"batch"}  # a task of Django is called with one job
    assert set(RTQ_OPTIONS) == OPTIONS.keys() - of_django - without_use, (
        "backend/rtq_task.py: change the fields of RTQTask"
    )


def test_help_describes_every_option():
    described = re.findall(r"^(\w+)  +\S", type(task).__doc__, re.M)

    assert set(described) == TASK_NAMES
    assert all(OPTIONS[name].says for name in TASK_NAMES)


# -- the errands of CONTRIBUTING, done to the letter in a copy of the package


ERRANDS = {
    "an option of a task": (
        {
            "core/tasks/task.py": (
                "    time_limit: ",
                '    note: str = option("", NOTE, on=CALL, in_record=True, says="a note")\n',
            ),
            "core/tasks/options/types.py": ("    time_limit: ", "    note: str\n"),
        },
        (
            "work = jobs.work.using(note='b')\n"
            "print(jobs.work.note, work.note, work.options_in_record, end=' ')\n"
            "print('note' in type(django_rtq.task).__doc__, end=' ')\n"
            "try: jobs.work.using(note=5)\n"
            "except django_rtq.InvalidTask as error: print(error)\n"
        ),
        'a b "note":"b" True jobs.work: note is 5, but has to be a text.',
    ),
    "a setting": (
        {"core/conf/config.py": ("    time_limit: ", '    note: str = option("", NOTE, unit="text")\n')},
        (
            "from django_rtq.core.conf.config import read_config\n"
            "print(read_config({'NOTE': 'x'}, debug=True).note, end=' ')\n"
            "try: read_config({'NOTE': 5}, debug=True)\n"
            "except django_rtq.ConfigurationError as error: print(error)\n"
        ),
        'x RTQ["NOTE"] is 5, but has to be a text.',
    ),
}
NOTE = 'NOTE = accepts(lambda value: isinstance(value, str), "a text")\n'


@pytest.mark.parametrize("errand", ERRANDS)
def test_an_option_is_added_as_contributing_says(errand, tmp_path):
    edits, program, expected = ERRANDS[errand]
    (row,) = [cells for cells in rows(section(read("CONTRIBUTING.md"), "## Where things go")) if cells[0] == errand]
    named = {path for path in re.findall(r"`([\w/]+\.py)`", row[1].partition("if ")[0])}
    assert named == edits.keys()
    shutil.copytree(
        ROOT / "django_rtq", tmp_path / "django_rtq", ignore=shutil.ignore_patterns("__pycache__", "locale")
    )
    for path, (before, line) in edits.items():
        text = (tmp_path / "django_rtq" / path).read_text()
        assert before in text
        text = text.replace(before, line + before, 1)
        if "NOTE" in line:
            text = text.replace("\n\n\n", f"\n\n{NOTE}\n\n", 1)
        (tmp_path / "django_rtq" / path).write_text(text)
    (tmp_path / "jobs.py").write_text(
        f"from django_rtq import task\n@task{'(note=chr(97))' if 'task' in errand else ''}\ndef work(): ...\n"
    )
    start = (
        "import django, django_rtq\nfrom django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['django_rtq'], RTQ={'REDIS': 'redis://localhost'})\n"
        "django.setup()\nimport jobs\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", start + program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.stdout.strip(), done.stderr) == (expected, "")
