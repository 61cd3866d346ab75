"""What somebody is told whose call is refused."""

import pytest

from django_rtq.exceptions import InvalidTask


def refusal(call, *args, **options):
    """The text of the InvalidTask that it raises."""
    with pytest.raises(InvalidTask) as caught:
        call(*args, **options)
    return str(caught.value)
