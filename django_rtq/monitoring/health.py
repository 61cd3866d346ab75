"""A view for health checks of load balancers and uptime monitors."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from django_rtq.console.incidents import look, worst_of
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.shards import AllShards
from django_rtq.core.broker.task_backends import shard_numbers
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import BrokerError

CACHED_SECONDS = 1.0
_lock = threading.Lock()  # one of the threads asks Redis, the others wait for its answer
_kept: dict[str, Any] = {}  # the answer, the configuration that it is about, and until when it is kept


@require_safe
def health_view(request: HttpRequest) -> JsonResponse:
    """200, or 503 if something is critical or Redis does not answer; as JSON, the kinds of what is wrong.

    It names no queues, tasks, clients or hosts, so it needs no permission.
    """
    with _lock:
        if _kept.get("config") is not get_config() or time.monotonic() >= _kept["until"]:
            _kept.update(answer=_read(), config=get_config(), until=time.monotonic() + CACHED_SECONDS)
        status, answer = _kept["answer"]
    return JsonResponse(answer, status=status, headers={"Cache-Control": "no-store"})


vars(health_view)["login_required"] = False  # as @login_not_required does, which Django has from 5.1 on


def _read() -> tuple[int, dict[str, Any]]:
    readers = AllShards(is_patient=True) if shard_numbers() else readers_of()
    try:
        incidents, away = look(readers).incidents, len(readers.silent)
    except BrokerError:
        incidents, away = (), len(readers.silent) or 1
    if away:
        unreachable = {"kind": "redis_unreachable", "severity": "critical", "count": away}
        return 503, {"status": "critical", "incidents": [unreachable]}
    counts = Counter((incident.kind, str(incident.severity)) for incident in incidents)
    numbers = [{"kind": kind, "severity": severity, "count": n} for (kind, severity), n in counts.items()]
    status = worst_of(incidents)
    return 503 if status == "critical" else 200, {"status": status, "incidents": numbers}
