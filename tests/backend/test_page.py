"""The example of a Redis for one backend, as users would write it."""

import sys
from types import ModuleType

import pytest
from django.test import override_settings

from django_rtq.backend.compat import task_backends
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from tests.markdown import blocks, read


def test_it_runs(broker, other_server, monkeypatch):
    pytest.importorskip("django.tasks")
    *_, (_, given), (_, code) = blocks(read("docs/django-tasks.md"))
    options, module = {}, ModuleType("shop.reports")
    exec(compile(given, "docs/django-tasks.md", "exec"), options)
    options["TASKS"]["reports"]["OPTIONS"]["REDIS"] = other_server.url
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with override_settings(TASKS=options["TASKS"]):
        assert not task_backends["reports"].check()
        exec(compile(code, "docs/django-tasks.md", "exec"), vars(module))
        result = module.ask_for("May")

        assert module.count_waiting() == 1
        assert module.build.get_result(result).args == ["May"]
        assert readers_of().queues.names() == []
        assert module.build.rtq_task.time_limit == 3600
        readers_of("reports").sweeps.purge_some("reports", None)
        get_broker("reports").close()
