"""Loops that go on where they were, and steps that commit with their result, in this process."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from django_rtq import InvalidStep, JobContext, task
from django_rtq.databases.exactly_once import delete_committed_jobs
from django_rtq.models import CommittedJob
from django_rtq.testing import drain, eager
from django_rtq.workflows.steps import job_steps
from django_rtq.workflows.steps.store import StepStore

pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.django_db]
done = []


@pytest.fixture
def written(monkeypatch):
    """What is written of steps and loops. Redis does not get it."""
    texts = []

    def write(self, holder, field, text):
        texts.append(text)
        yield from ()
        return True

    monkeypatch.setattr(StepStore, "write", write)
    return texts


@pytest.fixture(autouse=True)
def nothing_done():
    done.clear()


def groups(*names):
    return [Group.objects.create(name=name).pk for name in names]


class Broken(Exception):
    """Ends a run."""


async def numbers():
    for number in range(6):
        yield number


ITEMS = {
    "groups": lambda: Group.objects.exclude(name="not me"),
    "range": lambda: range(6),
    "iterator": lambda: iter(range(6)),
    "coroutine": numbers,
}


@task(takes_context=True, max_attempts=5, backoff=0)
def over(context, kind, breaks_at=()):
    """Fails once at each of these items."""
    for item in context.each(kind, ITEMS[kind]()):
        note(context, getattr(item, "name", item), breaks_at)


@task(takes_context=True, max_attempts=5, backoff=0)
async def aover(context, kind, breaks_at=()):
    async for item in context.aeach(kind, ITEMS[kind]()):
        note(context, getattr(item, "name", item), breaks_at)


def note(context, item, breaks_at):
    if item in breaks_at[context.attempt - 1 : context.attempt]:
        raise Broken
    done.append(item)


@task(takes_context=True, max_attempts=2, backoff=0)
def one_after_another(context):
    """Fails behind the second loop."""
    for name in "ab":
        for number in context.each(name, range(2)):
            done.append(number)
    if context.attempt == 1:
        raise Broken


@task(takes_context=True)
def comments(context):
    return [context.wait("comment") for _ in context.each("numbers", range(3))]


@task(takes_context=True)
def loops(context, scene):
    for _ in context.each("x", {"sliced": Group.objects.all()[:3], "values": Group.objects.values("pk")}[scene]):
        pass


@pytest.mark.parametrize("each", [over, aover])
def test_a_loop_over_a_queryset_goes_on_behind_the_last_key(each):
    groups("c", "b", "a", "not me", "d")
    each.delay("groups", ["b", "a"])

    drain(raise_errors=False)

    assert done == ["c", "b", "a", "d"]


def delete(group):
    group.delete()


def copy(group):
    if group.name.isalpha():
        group.pk = None
        group.name += "2"
        group.save()


def change_key(group):
    group.pk += 1_000


@task(takes_context=True, max_attempts=2, backoff=0)
def changes_items(context, body):
    """Fails once at its third item."""
    for group in context.each("groups", Group.objects.all()):
        if len(done) == 2 and context.attempt == 1:
            raise Broken
        done.append(group.name)
        BODIES[body](group)


@task(takes_context=True, max_attempts=2, backoff=0)
async def achanges_items(context, body):
    async for group in context.aeach("groups", Group.objects.all()):
        if len(done) == 2 and context.attempt == 1:
            raise Broken
        done.append(group.name)
        await sync_to_async(BODIES[body])(group)


BODIES = {function.__name__: function for function in (delete, copy, change_key)}


@pytest.mark.parametrize("over", [changes_items, achanges_items])
@pytest.mark.parametrize("body", BODIES)
def test_a_body_may_delete_copy_and_change_its_item(over, body):
    groups(*"abcde")
    over.delay(body)

    drain(raise_errors=False)

    assert done[:5] == [*"abcde"]
    assert len(set(done)) == len(done)


@pytest.mark.parametrize(("each", "kind"), [(over, "iterator"), (aover, "coroutine"), (aover, "range")])
def test_a_loop_over_another_iterable_goes_on_behind_the_last_item(each, kind):
    each.delay(kind, [2, 4])

    drain(raise_errors=False)

    assert done == [0, 1, 2, 3, 4, 5]


def test_a_loop_that_is_over_does_not_begin_again():
    one_after_another.delay()
    drain(raise_errors=False)

    assert done == [0, 1, 0, 1]


def test_how_far_it_is_is_stored_once_a_second(written, monkeypatch):
    over.delay("iterator")
    drain()
    assert len(written) == 1

    monkeypatch.setattr(job_steps, "SAVE_SECONDS", 0.0)
    over.delay("iterator")
    drain()
    assert len(written) == 1 + 7


@task(takes_context=True)
def nested_naps(context):
    """Sleeps in an inner loop, and leaves the outer one before its end."""
    for letter in context.each("outer", "abc"):
        for number in context.each(f"inner {letter}", range(2)):
            done.append(f"{letter}{number}")
            context.sleep(60)
        context.sleep(60)
        if letter == "b":
            break
    context.sleep(60)
    done.append("end")


def test_sleeps_of_nested_loops_are_told_apart():
    nested_naps.delay()

    runs = drain(until=timedelta(hours=1))

    assert done == ["a0", "a0", "a1", "a1", "b0", "b0", "b1", "b1", "end"]
    assert [run.state for run in runs] == ["scheduled"] * 7 + ["succeeded"]


def test_waits_within_a_loop_get_their_own_events():
    job = comments.delay()
    drain()
    for value in "abc":
        job.send("comment", value)
        drain()

    assert job.result == ["c"]  # the items before were finished in earlier runs


@pytest.mark.parametrize("scene", ["sliced", "values"])
def test_a_queryset_without_keys_is_refused(scene):
    loops.delay(scene)

    with pytest.raises(InvalidStep, match=r"each\('x'\) takes a queryset of objects"):
        drain()


def test_in_a_plain_call_a_loop_is_a_loop():
    async def collect(items):
        return [item async for item in JobContext().aeach("x", items)]

    assert list(JobContext().each("x", [1, 2])) == [1, 2]
    assert asyncio.run(collect([1, 2])) == [1, 2]
    assert asyncio.run(collect(numbers())) == [0, 1, 2, 3, 4, 5]


def make_group(name, *, fails=False):
    Group.objects.create(name=name)
    if fails:
        raise Broken
    return name


@task(takes_context=True, max_attempts=2, backoff=0)
def book(context, *, database="default", is_nested=False):
    context = context.using(database=database)
    if is_nested:
        with transaction.atomic():
            context.atomic_step("a", make_group, "a")
    first = context.atomic_step("a", make_group, "a")
    context.atomic_step("b", make_group, "b", fails=context.attempt == 1)
    return first


def test_an_atomic_step_commits_its_rows_with_its_result():
    book.delay()

    runs = drain()

    assert [run.state for run in runs] == ["retrying", "succeeded"]
    assert runs[-1].result == "a"
    assert sorted(Group.objects.values_list("name", flat=True)) == ["a", "b"]
    assert CommittedJob.objects.count() == 2


def test_a_step_that_has_committed_is_not_called_again_when_redis_does_not_know_it(written):
    book.delay()

    assert drain()[-1].result == "a"
    assert Group.objects.filter(name="a").count() == 1


def test_rows_of_steps_are_kept_while_redis_has_the_job(monkeypatch):
    job = book.delay()
    CommittedJob.objects.create(
        job_id=f"{job.id}:abc", queue="default", committed_at=timezone.now() - timedelta(days=99)
    )
    CommittedJob.objects.create(job_id="gone:abc", queue="default", committed_at=timezone.now() - timedelta(days=99))

    assert delete_committed_jobs.func("default") == 1

    assert [row.job_id for row in CommittedJob.objects.all()] == [f"{job.id}:abc"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"is_nested": True}, r"atomic_step\('a'\) cannot be called within atomic\(\)"),
        ({"database": "nope"}, "atomic_step.. uses database 'nope', but DATABASES has: default"),
    ],
)
def test_where_it_cannot_commit_it_is_refused(options, words):
    book.delay(**options)

    with pytest.raises(InvalidStep, match=words):
        drain()


def test_in_eager_and_in_a_plain_call_it_is_a_transaction():
    with eager(retries=True):
        assert book.delay().get() == "a"
    with pytest.raises(Broken):
        JobContext().atomic_step("x", make_group, "x", fails=True)

    assert sorted(Group.objects.values_list("name", flat=True)) == ["a", "b"]
