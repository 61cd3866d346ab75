"""captured(), eager() and drain() for classes of unittest and Django."""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django_rtq.testing.captured import CapturedJobs
from django_rtq.testing.drain import drain
from django_rtq.testing.eager import EagerJobs
from django_rtq.testing.private_redis import private_redis

if TYPE_CHECKING:
    _TestCase = unittest.TestCase
else:
    _TestCase = object


class _Mixin(_TestCase):
    """Enters a helper for setUpClass() and setUpTestData(), and a new one around setUp(), test and tearDown()."""

    jobs: Any
    _new_helper: ClassVar[Any]  # makes a helper

    @classmethod
    def setUpClass(cls) -> None:
        helper = cls._new_helper()
        helper.__enter__()
        cls.addClassCleanup(helper.__exit__, None, None, None)
        super().setUpClass()

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        with self._new_helper() as self.jobs:
            return super().run(result)


class CapturedMixin(_Mixin):
    """Collects the jobs of each test in `self.jobs`. Put it before TestCase."""

    jobs: CapturedJobs
    _new_helper = CapturedJobs


class EagerMixin(_Mixin):
    """Runs the jobs of each test at once; the runs are in `self.jobs`. Put it before TestCase."""

    jobs: EagerJobs
    eager_options: ClassVar[Mapping[str, Any]] = {}  # options of eager()

    @classmethod
    def _new_helper(cls) -> EagerJobs:
        return EagerJobs(**cls.eager_options)


class DrainMixin(_Mixin):
    """Gives each test an empty private_redis(), and `self.drain()`. Put it before TestCase."""

    drain = staticmethod(drain)
    _new_helper = private_redis
