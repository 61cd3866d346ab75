"""Tasks that were written for Celery."""

import sys

import pytest
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from django_rtq import workflow
from django_rtq.compat import celery as compat
from django_rtq.compat.celery import (
    AsyncResult,
    MaxRetriesExceededError,
    SoftTimeLimitExceeded,
    chain,
    chord,
    get_task_logger,
    group,
    shared_task,
    signature,
)
from django_rtq.core.schedules import cron
from django_rtq.exceptions import Bury, ConfigurationError, InvalidTask, JobFailed, Retry, WorkflowFailed
from django_rtq.testing import drain, eager, private_redis
from tests.support.waiting import wait_until

SEEN = []


@shared_task
def add(first, second=1):
    """Add."""
    SEEN.append(("add", first, second))
    return first + second


@shared_task
def total(numbers):
    SEEN.append(("total", numbers))
    return sum(numbers)


@shared_task
def total_of_all(values):
    SEEN.append(("all", values))
    return values


@shared_task(bind=True, name="celery.fetch", queue="mail", max_retries=2, default_retry_delay=0)
def fetch(self, url, throw=True, **options):
    SEEN.append((self.request.retries, url))
    try:
        raise OSError(url)
    except OSError as error:
        self.retry(exc=error, throw=throw, **options)
    return "went on"


@shared_task(bind=True)
def other_arguments(self, number):
    SEEN.append((number, self.request.retries))
    if number < 3:
        raise self.retry(args=[number + 1], countdown=0)
    return number


@shared_task(autoretry_for=(OSError,), retry_backoff=2, retry_backoff_max=5, retry_jitter=False, max_retries=4)
def flaky():
    raise OSError


@shared_task(autoretry_for=(OSError,), dont_autoretry_for=(TimeoutError,), max_retries=2)
def unsure(error):
    SEEN.append(error)
    raise error


@shared_task(bind=True)
def calls_fetch(self):
    result = fetch.apply(("https://b",))
    return [self.request.retries, result.state]


@shared_task(acks_late=True, ignore_result=True, soft_time_limit=30, time_limit=60)
def long():
    raise ValueError


@shared_task
def ignore():
    raise compat.Ignore


@pytest.fixture(autouse=True)
def seen():
    SEEN.clear()
    return SEEN


@pytest.fixture
def redis():
    with private_redis():
        yield


def test_a_task_is_a_function():
    assert add(1, second=2) == 3
    assert (add.name, add.__name__, add.__doc__) == ("tests.compat.test_celery.add", "add", "Add.")
    assert fetch.name == "celery.fetch"


def test_options_become_ours():
    assert (add.rtq_task.max_attempts, add.rtq_task.max_crashes, add.rtq_task.retry_on) == (4, 0, ())
    assert (fetch.rtq_task.queue_name, fetch.rtq_task.max_attempts) == ("mail", 3)
    assert (long.rtq_task.max_crashes, long.rtq_task.result_ttl, long.rtq_task.time_limit) == (None, 0, 30)
    assert [flaky.rtq_task.backoff(failures) for failures in range(1, 5)] == [2, 4, 5, 5]
    assert flaky.rtq_task.retry_on == (OSError,)


@pytest.mark.parametrize(
    ("option", "cure"),
    [
        ("rate_limit", "rate of its queue"),
        ("base", "middleware"),
        ("pickles", "no counterpart"),
        ("link", "apply_async"),
    ],
)
def test_an_option_without_counterpart_is_refused(option, cure):
    with pytest.raises(InvalidTask, match=cure):
        shared_task(**{option: 1})(add.__wrapped__)


def test_delay_and_its_result(redis):
    result = add.delay(1, second=5)
    assert (result.state, result.ready(), result.result) == ("PENDING", False, None)
    drain()
    assert (result.state, result.ready(), result.successful(), result.get(timeout=1)) == ("SUCCESS", True, True, 6)
    assert AsyncResult(result.id).get(timeout=1) == 6
    assert AsyncResult("0" * 32).state == "PENDING"


@pytest.mark.django_db(transaction=True)
def test_a_job_that_waits_for_a_commit_is_pending(redis):
    with transaction.atomic():
        handle = add.rtq_task.delay_on_commit(1)
        result = AsyncResult(handle.id, handle=handle)
        assert (result.state, result.info) == ("PENDING", None)


@shared_task(bind=True)
def import_rows(self, fails):
    self.update_state(state="PROGRESS", meta={"current": 5, "total": 10})
    wait_until(lambda: AsyncResult(self.request.id).info)
    SEEN.append(AsyncResult(self.request.id).info)
    if fails:
        raise ValueError("row 6")
    return "imported"


def test_what_views_ask_of_a_result(redis, seen):
    done, failed = import_rows.delay(fails=False), import_rows.delay(fails=True)

    drain(raise_errors=False)

    assert seen == [{"current": 5, "total": 10}] * 2
    assert (done.info, done.traceback) == ("imported", None)
    assert isinstance(failed.info, JobFailed)
    assert "row 6" in failed.traceback


def test_what_views_ask_of_the_result_of_a_workflow(redis):
    result = (add.s(1) | add.s(2)).delay()
    assert (result.info, result.traceback) == (None, None)

    drain()

    assert (result.info, result.traceback) == (4, None)
    assert AsyncResult(result.id).result == 4
    many = chord([add.s(1), add.s(2)], total_of_all.s()).delay()
    drain()
    assert AsyncResult(many.id).result == [2, 3]


def test_a_failure_without_autoretry_is_final(redis):
    result = long.delay()
    drain(raise_errors=False)
    assert (result.state, result.failed()) == ("FAILURE", True)
    with pytest.raises(JobFailed):
        result.get(timeout=1)
    assert isinstance(result.get(timeout=1, propagate=False), JobFailed)


def test_revoke(redis):
    result = add.apply_async((1,), countdown=60)
    result.revoke()
    assert result.state == "REVOKED"


def test_apply_calls_it_here():
    assert add.apply((1,), {"second": 2}).get() == 3
    result = long.apply()
    assert result.wait(propagate=False) is result.get(propagate=False)
    assert (result.failed(), type(result.result)) == (True, ValueError)
    with pytest.raises(ValueError):  # noqa: PT011
        result.get()


def test_apply_runs_retries_in_the_same_call(seen):
    result = fetch.apply(("https://a",))
    assert seen == [(0, "https://a"), (1, "https://a"), (2, "https://a")]
    assert (result.state, type(result.result)) == ("FAILURE", OSError)

    seen.clear()
    assert other_arguments.apply((1,)).get() == 3
    assert seen == [(1, 0), (2, 1), (3, 2)]
    with pytest.raises(OSError, match="x"):
        fetch.apply(("x",), retries=2, throw=True)
    with pytest.raises(Retry):
        fetch.apply(("x",), throw=True)
    assert fetch.apply(("x",), {"throw": False}).get() == "went on"


def test_apply_runs_what_autoretry_names_again(seen):
    for error, times in [(OSError, 3), (TimeoutError, 1), (ValueError, 1)]:
        seen.clear()
        assert type(unsure.apply((error,)).result) is error
        assert seen == [error] * times


def test_apply_inside_of_a_job_counts_its_own_retries(seen):
    with eager():
        assert calls_fetch.delay().get() == [0, "FAILURE"]
    assert [retries for retries, _ in seen] == [0, 1, 2]


# -- retry()


def test_retry_runs_it_again_until_no_retries_are_left(redis, seen):
    result = fetch.delay("https://a")
    drain(until=60, raise_errors=False)
    assert seen == [(0, "https://a"), (1, "https://a"), (2, "https://a")]
    assert result.state == "FAILURE"


def test_retry_with_other_arguments_is_another_job(redis, seen):
    result = other_arguments.delay(1)
    drain(until=60)
    assert seen == [(1, 0), (2, 1), (3, 2)]
    assert result.successful()


def test_retry_that_does_not_throw_lets_the_run_go_on(redis, seen):
    result = fetch.delay("https://a", throw=False)
    drain(until=60, raise_errors=False)
    assert result.get(timeout=1) == "went on"
    assert [retries for retries, _ in seen] == [0, 1, 2]


def test_retry_outside_a_job_raises_the_error():
    with pytest.raises(OSError, match="https://a"):
        fetch("https://a")
    with pytest.raises(Retry):
        other_arguments(1)


@shared_task(bind=True, max_retries=0)
def none_left(self):
    try:
        self.retry()
    except Exception as error:
        SEEN.append(type(error))
        raise


def test_no_retries_left_without_an_error(redis, seen):
    none_left.delay()
    drain(raise_errors=False)
    assert seen == [MaxRetriesExceededError]


def test_a_task_that_raises_ignore_succeeds(redis):
    result = ignore.delay()
    drain()
    assert result.successful()


# -- calls that are made later


def test_a_chain_passes_results_on(redis, seen):
    (add.s(1, 1) | add.s(10) | add.si(100, 100)).delay()
    drain()
    assert seen == [("add", 1, 1), ("add", 2, 10), ("add", 100, 100)]
    seen.clear()
    chain(add.s(1), signature("tests.compat.test_celery.add", kwargs={"second": 7}).set(countdown=5)).apply_async()
    drain(until=10)
    assert seen == [("add", 1, 1), ("add", 2, 7)]


def test_link_is_enqueued_after_a_success_only(redis, seen):
    add.apply_async((1,), link=add.s(second=3))
    long.apply_async(link=add.si(0, 0))
    drain(raise_errors=False)
    assert seen == [("add", 1, 1), ("add", 2, 3)]


def test_a_group_is_many_jobs(redis):
    results = group(add.s(number) for number in range(3)).apply_async()
    drain()
    assert results.successful()
    assert results.get(timeout=1) == [1, 2, 3]


def test_a_signature_can_be_called_here():
    assert add.s(1)(second=5) == 6


def test_a_chord_gets_the_list_of_results_once(redis, seen):
    result = chord([add.s(number) for number in range(3)])(total.s())
    drain()
    assert result.get(timeout=1) == 6
    assert seen[-1] == ("total", [1, 2, 3])
    assert (result.state, result.ready(), result.successful()) == ("SUCCESS", True, True)
    assert [each.state for each in (AsyncResult(result.id), AsyncResult("f" * 12))] == ["SUCCESS", "PENDING"]
    assert AsyncResult(result.id).get(timeout=1) == 6
    with workflow("w") as flow:
        flow.add(total.rtq_task, [1])
    drain()
    with pytest.raises(InvalidTask, match="says of no step that it is its result"):
        AsyncResult(flow.id).get(timeout=1)


def test_canvases_are_nested(redis, seen):
    flow = add.s(1, 1) | group(add.s(10), total.si([5]), group(add.s(100), add.s(200)) | total.s()) | total_of_all.s()
    result = flow.apply_async()
    drain()
    assert result.get(timeout=1) == [12, 5, 304]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: group(add.s(1), add.s(5)) | total.s(), 8),
        (lambda: chain(group(add.s(1)), total.s(), add.s(10)), 12),
        (lambda: chord(group(add.s(n) for n in range(2)), add.si(7, 7)), 14),
        (lambda: chain(add.s(1, 1) | add.s(1), add.s(1)), 4),
        (lambda: group(add.s(1) | add.s(1), add.si(2)), [3, 3]),
        (lambda: add.chunks([(n, n) for n in range(5)], 2) | total_of_all.s(), [[0, 2], [4, 6], [8]]),
        (lambda: add.map([1, 2]) | total.s(), 5),
        (lambda: chain(group([]), total.s()), 0),
    ],
)
def test_what_is_combined_becomes_a_workflow(redis, make, expected):
    result = make().delay()
    drain()
    assert result.get(timeout=1) == expected


def test_many_calls_are_one_job(redis, seen):
    results = [add.starmap([(1, 2), (3, 4)]).delay(), add.map([5]).apply_async(link=total.s())]
    drain()
    assert [result.get(timeout=1) for result in results] == [[3, 7], [6]]
    assert seen == [("add", 1, 2), ("add", 3, 4), ("add", 5, 1), ("total", [6])]
    chunked = add.chunks(zip(range(3), range(3), strict=True), 2)()
    drain()
    assert chunked.get(timeout=1) == [[0, 2], [4]]


def test_arguments_of_a_call_go_to_the_first(redis, seen):
    (add.s(1) | add.s()).delay(5)
    group(add.s(1) | add.s()).apply_async((7,), queue="mail")
    drain()
    assert sorted(seen) == [("add", 5, 1), ("add", 6, 1), ("add", 7, 1), ("add", 8, 1)]


def test_links_of_what_is_combined_follow_it(redis, seen):
    first = add.s(1)
    first.link(add.s(50))
    (first | add.s(10)).apply_async(link=total_of_all.s())
    add.apply_async((0, 0), link=add.s(1) | add.s(2))
    drain()
    assert sorted(seen[1:]) == [
        ("add", 0, 0),
        ("add", 0, 1),
        ("add", 1, 2),
        ("add", 2, 10),
        ("add", 2, 50),
        ("all", 12),
    ]


def test_an_errback_is_called_once_something_is_dead(redis, seen):
    result = long.apply_async(link_error=add.si(7, 7))
    group(long.si(), long.si() | add.s()).on_error(add.si(8, 8)).apply_async()
    drain(raise_errors=False)
    assert sorted(seen) == [("add", 7, 7), ("add", 8, 8)]
    assert (result.state, result.failed()) == ("FAILURE", True)
    with pytest.raises(WorkflowFailed, match="Dead jobs: 1"):
        result.get(timeout=1)
    assert isinstance(result.result, WorkflowFailed)


def test_retry_in_a_chain(redis, seen):
    (fetch.si("a") | add.si(1)).delay()
    (other_arguments.si(1) | add.si(2)).delay()
    drain(raise_errors=False)
    assert [call for call in seen if call[1] == "a"] == [(0, "a"), (1, "a"), (2, "a")]
    assert ("add", 2, 1) not in seen


@shared_task(bind=True)
def again(self, most):
    SEEN.append(self.request.retries)
    self.retry(max_retries=most, countdown=0)


@pytest.mark.parametrize("most", [1, 6])
def test_retry_says_how_often_in_a_chain_and_alone(redis, seen, most):
    (ignore.si() | again.si(most)).delay()
    again.delay(most)
    drain(raise_errors=False)
    assert sorted(seen) == sorted([*range(most + 1)] * 2)


def test_options_are_set_in_place():
    signature = add.s(1, 2)
    assert signature.set(queue="high", immutable=True) is signature
    assert (signature.options, signature.immutable) == ({"queue": "high"}, True)


@pytest.mark.parametrize("canvas", [add.s(1), add.s(1) | add.s(2), group(add.s(1), add.s(2))])
def test_copies_have_lists_of_their_own(canvas):
    copy = canvas.clone()
    copy.link(add.s(3))
    copy.link_error(add.si(3))
    for one in getattr(copy, "tasks", [copy]):
        one.set(queue="high").link(add.s(4))

    assert (canvas.links, canvas.errors) == ([], [])
    assert all((one.links, one.options) == ([], {}) for one in getattr(canvas, "tasks", [canvas]))
    assert add.s(2).clone((1,), queue="high") == signature(add, (1, 2), queue="high")


@pytest.mark.django_db(transaction=True)
def test_it_is_enqueued_on_commit(redis):
    with transaction.atomic():
        assert add.delay_on_commit(1, 2) is None
        assert add.apply_async_on_commit((1,), {"second": 2}, queue="default") is None
        assert drain() == []
    assert [run.result for run in drain()] == [3, 3]


@shared_task(bind=True)
def replaces(self):
    self.replace(add.s(1, 2))


def test_a_job_that_replaces_itself_is_told_what_to_do(redis):
    replaces.delay()
    with pytest.raises(Bury, match=r"replaces: self\.replace\(\) is not possible"):
        drain()


def test_a_workflow_is_revoked(redis, seen):
    result = (add.s(1, 1) | add.s(1)).delay()
    result.revoke()
    drain()
    assert (seen, result.state) == ([], "REVOKED")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: add.apply_async((1,), link_error=add.s()), "Use .si"),
        (lambda: add.apply_async((1,), link_error=add.si(1) | add.s()), "takes one signature"),
        (lambda: chain(add.s(1).on_error(add.si(1)), add.s().on_error(add.si(2))).delay(), "calls one errback"),
        (lambda: chain(add.s(1), add.s().set(shadow="x")).delay(), "does not take 'shadow'. Jobs are shown"),
        (lambda: group(add.s(1)).set(queue="mail"), "set them for its signatures"),
        (chain, "needs signatures"),
    ],
)
def test_what_cannot_be_translated_is_refused(redis, make, why):
    with pytest.raises(InvalidTask, match=why):
        make()


# -- the stand-in for the package


@pytest.fixture
def no_celery(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "celery"]:
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "celery"]:
        del sys.modules[name]


def test_the_package_is_replaced(no_celery):
    compat.stand_in()
    import celery
    from celery import shared_task as replaced
    from celery.exceptions import SoftTimeLimitExceeded as limit
    from celery.utils.log import get_task_logger as get_logger

    assert (replaced, limit, get_logger) == (shared_task, SoftTimeLimitExceeded, get_task_logger)
    with pytest.raises(AttributeError, match=r"celery\.Bootstep has no counterpart"):
        _ = celery.Bootstep
    with pytest.raises(ImportError, match=r"django_rtq/compat/celery\.py"):
        from celery import Bootstep  # noqa: F401
    with pytest.raises(ImportError):
        import celery.beat
    with pytest.raises(ImportError, match=r"Connect to django_rtq\.signals"):
        from celery.signals import task_prerun  # noqa: F401
    from celery.contrib.django.task import DjangoTask
    from celery.schedules import crontab

    assert isinstance(add, DjangoTask)
    assert crontab(minute=30, day_of_week="mon-fri") == cron("30 * * * mon-fri")


def test_a_package_that_is_imported_is_not_replaced(no_celery, monkeypatch):
    monkeypatch.setitem(sys.modules, "celery", sys)
    with pytest.raises(ConfigurationError, match="already imported"):
        compat.stand_in()


@pytest.mark.parametrize("value", ["yes", 1])
def test_the_setting_is_true_or_false(value):
    from django_rtq.core.conf.config import get_config

    with (
        override_settings(RTQ={**settings.RTQ, "CELERY_STAND_IN": value}),
        pytest.raises(ConfigurationError, match="CELERY_STAND_IN"),
    ):
        get_config()
