"""Results of django.tasks, read again."""

from tests.support.waiting import wait_until


def refreshed(result):
    result.refresh()
    return result


def finished(result):
    """The result when its job has ended."""
    wait_until(lambda: refreshed(result).is_finished)
    return result
