"""Arguments are checked against the signature where the task is called."""

import enum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_rtq import task
from django_rtq.core.tasks.calls import Signature
from tests.core.tasks.refusals import refusal
from tests.support.jobs import take, take_all
from tests.support.snapshots import snapshot

NAME = "tests.core.tasks.options.test_signature.send"
ID = UUID("12345678123456781234567812345678")


class Urgency(enum.IntEnum):
    HIGH = 10


class Line(str, enum.Enum):
    MAIL = "mail"


@task
def plain(a=0, b=0):
    return a, b


def send(account_id, invoice_id=0):
    return account_id, invoice_id


def rest(first, /, *more, dry=False, **others):
    return first, more, dry, others


def look(context, number):
    return context, number


SHAPES = [
    lambda: None,
    lambda a: None,
    lambda a, b=1: None,
    lambda a=1, b=2: None,
    lambda a, /, b: None,
    lambda a=1, /: None,
    lambda *a: None,
    lambda a, *b: None,
    lambda *, a: None,
    lambda a, *, b: None,
    lambda a=1, *, b=2: None,
    lambda **a: None,
    lambda x, /, **y: None,  # not a: Python 3.13 takes the keyword for one of y, which a call does not
    lambda a, *b, c=1, **d: None,
]


def fits(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except TypeError:
        return False
    return True


# -- what fits


@given(
    st.sampled_from(SHAPES),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.sampled_from("abcd"), st.integers(), max_size=3),
)
def test_arguments_fit_where_a_call_of_the_function_would(function, args, kwargs):
    signature = Signature(function, takes_context=False)

    assert fits(signature.check, args, kwargs) == fits(function, *args, **kwargs)


def test_a_context_is_none_of_the_arguments():
    signature = Signature(look, takes_context=True)

    assert signature.names == ["number"]
    assert fits(signature.check, [1], {})
    assert not fits(signature.check, [1, 2], {})
    assert not fits(signature.check, [1], {"context": 2})


@pytest.mark.parametrize("function", [send, lambda: 1, lambda *, context: 1, lambda *context: 1])
def test_a_context_needs_its_place(function):
    function.__qualname__ = "send"

    assert refusal(task(takes_context=True), function) == (
        f"{NAME}: takes_context is on, so its first parameter has to be `context`."
    )


# -- whose job it is


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("acme", "acme"),
        ("a b:c ü 😀", "a b:c ü 😀"),
        ("a" * 200, "a" * 200),
        ("", ""),
        (None, ""),
        (7, "7"),
        (0, "0"),
        (-(2**70), str(-(2**70))),
        (Urgency.HIGH, "10"),
        (Line.MAIL, "mail"),
        (ID, str(ID)),
        (lambda a, b: a, "7"),
        (lambda b, **_: f"client {b}", "client 42"),
        (lambda a, *args, **kwargs: f"{a} {args} {kwargs}", "7 () {'b': 42}"),
        (lambda **named: str(sorted(named.items())), "[('a', 7), ('b', 42)]"),
        (lambda **_: None, ""),
    ],
)
def test_a_client_is_text_or_what_stands_for_it(broker, client, name):
    told = plain.using(client=client)
    told.delay(7, 42)
    told.delay(7, b=42)
    told.delay_many([((), {"b": 42, "a": 7})])

    assert [job.client for job in take_all(broker)] == [name] * 3


def test_a_client_function_gets_every_argument_by_its_name(broker):
    declared = task(client=lambda **named: str(sorted(named.items())))(rest)
    declared.delay(1, 2, 3, dry=True, x=4)
    declared.delay(1)

    assert [job.client for job in take_all(broker)] == [
        "[('dry', True), ('first', 1), ('more', (2, 3)), ('x', 4)]",
        "[('dry', False), ('first', 1), ('more', ())]",
    ]


def test_a_client_function_of_a_context_task_gets_no_context(broker):
    task(takes_context=True, client=lambda number: number)(look).delay(7)

    assert take(broker).client == "7"


@pytest.mark.parametrize("client", ["a" * 201, "a\nb", "a\x00", "\ud800", "\u2028"])
def test_a_client_that_no_log_could_print_is_refused(client):
    assert refusal(task(client=client), send) == (
        f"{NAME}: client is {client[:50]!r}…, but has to be at most 200 printable characters."
    )


@pytest.mark.parametrize(
    ("client", "problem"),
    [
        (lambda account_id: 1, "got an unexpected keyword argument 'invoice_id'."),
        (lambda account, **_: 1, "missing a required argument: 'account'."),
    ],
)
def test_a_client_function_that_does_not_fit_is_refused_where_it_is_written(client, problem):
    assert refusal(task(client=client), send) == (
        f"{NAME}: client cannot be called with the arguments of the task by name: {problem} "
        "Add **_ for the arguments that it does not need."
    )


def test_a_client_function_that_is_async_is_refused():
    async def client(**_):
        return "acme"

    assert refusal(task(client=client), send) == f"{NAME}: client is an async function, but it is called without await."


def test_a_client_function_that_fails_leaves_nothing_behind(redis, broker):
    with pytest.raises(ZeroDivisionError):
        plain.using(client=lambda a, b: 1 / a).delay(0)
    text = refusal(plain.using(client=lambda a, b: [a]).delay, 0)

    assert text == f"{__name__}.plain: client is [0], but has to be text, a whole number or a UUID."
    assert snapshot(redis) == {}
