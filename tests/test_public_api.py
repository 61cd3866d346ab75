"""docs/api.md lists what is public: all of it exists, and nothing is missing."""

import inspect
import pickle
import re
from importlib import import_module

import pytest

import django_rtq
from django_rtq import JobContext, JobHandle, Task, exceptions
from tests.markdown import read, rows, section

PAGE = read("docs/api.md")
CLASSES = [Task, JobHandle, JobContext]
# What other modules of the package use, or options.
PRIVATE = {
    Task: {"body", "call_signature", "due", "expires_in", "options_in_record", "unique_digest"},
    JobHandle: {"tell_sent", "when_sent"},
    JobContext: set(),
}


def names(heading):
    """The names in the first columns of the table, or in the text if there is none."""
    text = section(PAGE, heading)
    return [name for part in [row[0] for row in rows(text)] or [text] for name in re.findall(r"`(\w+)(?:\(\))?`", part)]


def test_what_can_be_imported_from_the_package_is_on_the_page():
    assert sorted(names("## `django_rtq`")) == sorted(django_rtq.__all__)


def test_all_names_can_be_imported():
    for name in django_rtq.__all__:
        assert getattr(django_rtq, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = django_rtq.nothing


def test_all_exceptions_are_exported():
    own = [
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and value.__module__ == exceptions.__name__
    ]
    assert set(own) <= set(django_rtq.__all__)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.JobNotFound("x"),
        exceptions.QueueFull("mail", "acme", 2, 1, [None]),
        exceptions.WorkerNotFound("web1:7"),
        exceptions.WorkflowTimeout("0f3a9c1be27d", "is not over."),
        exceptions.BatchFailed({2: exceptions.Retry("later", after=60)}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_exceptions_can_be_pickled(error):
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), repr(vars(copy))) == (type(error), str(error), repr(vars(error)))


@pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
def test_every_member_on_the_page_exists(owner):
    instance_attributes = {"id", "queue_name", "duplicate", "backend"}
    for name in names(f"## {owner.__name__}"):
        assert hasattr(owner, name) or name in instance_attributes or name in owner.__annotations__, name


@pytest.mark.parametrize("owner", PRIVATE, ids=lambda owner: owner.__name__)
def test_every_method_is_on_the_page_or_private(owner):
    options = getattr(owner, "__dataclass_fields__", {})
    public = {name for name in vars(owner) if not name.startswith("_") and name not in options} - PRIVATE[owner]

    assert public <= set(names(f"## {owner.__name__}"))


@pytest.mark.parametrize("owner", [Task, JobHandle], ids=lambda owner: owner.__name__)
def test_a_twin_for_coroutines_takes_the_same_and_says_whose_it_is(owner):
    twins = [name for name in names(f"## {owner.__name__}") if name[1:] in dir(owner) and name[0] == "a"]
    assert len(twins) >= 2

    for name in twins:
        twin, method = getattr(owner, name), getattr(owner, name[1:])
        assert inspect.iscoroutinefunction(twin)
        assert name[1:] in twin.__doc__
        if not isinstance(method, property):
            assert inspect.signature(twin).parameters == inspect.signature(method).parameters


def test_the_nouns_can_do_what_the_page_says_and_no_more():
    for noun, what in rows(section(PAGE, "## rtq")):
        owner = eval(noun.strip("`"), {"rtq": django_rtq.rtq, "id": "x"})
        named = set(re.findall(r"`(\w+)(?:\(\))?`", what)) - {"JobDetails", "WorkerDetails"}
        public = {name for name in dir(owner) if not name.startswith("_")} - {"readers"}
        twins = {name for name in public if name[0] == "a" and name[1:] in public}
        assert public - twins == named, noun
        assert all(inspect.iscoroutinefunction(getattr(owner, name)) for name in twins)


def test_other_modules_exist():
    for (name,) in [re.findall(r"^`(.*)`$", row[0]) for row in rows(section(PAGE, "## Other modules"))]:
        if name != "django_rtq.backend":  # needs django.tasks
            import_module(name)
