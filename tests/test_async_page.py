"""The examples of the page about async code run."""

import asyncio
import json
import sys
import unittest
from types import ModuleType

import pytest
from django.test import AsyncRequestFactory

from django_rtq.core.tasks import registry
from django_rtq.testing import drain
from tests.markdown import blocks, read

PAGE = blocks(read("docs/async.md"))


@pytest.fixture
def shop(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    found = {}
    for file, code in PAGE:
        name = file.removesuffix(".py").replace("/", ".")
        found[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
        monkeypatch.setitem(sys.modules, name, found[name])
        exec(compile(code, f"docs/async.md: {file}", "exec"), vars(found[name]))
    return found


async def beside_a_worker(coroutine):
    """What it returns, while jobs run in a thread."""
    task = asyncio.create_task(coroutine)
    while not task.done():
        await asyncio.to_thread(drain)
        await asyncio.wait([task], timeout=0.01)
    return await task


def test_the_view_gets_its_result(broker, shop):
    request = AsyncRequestFactory().get("/")
    response = asyncio.run(beside_a_worker(shop["shop.views"].quote(request, 5)))
    assert (response.status_code, json.loads(response.content)) == (200, {"price": 15})


def test_many_results_are_gathered(broker, shop):
    assert asyncio.run(beside_a_worker(shop["shop.stock"].stock_of(range(30)))) == [7] * 30


def test_its_test_passes(shop):
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(shop["shop.tests"].PriceTests)
    result = unittest.TestResult()
    tests.run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
