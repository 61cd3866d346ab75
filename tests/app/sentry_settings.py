"""Settings of workers that report to a file instead of Sentry."""

import json
import os
from pathlib import Path

import sentry_sdk
from sentry_sdk.transport import Transport

from django_rtq.monitoring.sentry import RTQIntegration
from tests.settings import *  # noqa: F403


class FileTransport(Transport):
    """Appends the payload of each item to a file, a JSON object a line, when it is flushed. So nothing is lost only if
    the worker flushes."""

    def __init__(self, options=None):
        super().__init__(options)
        self._items = []

    def capture_envelope(self, envelope):
        self._items += [item.payload.json for item in envelope.items if item.payload.json]

    def flush(self, timeout, callback=None):
        with Path(os.environ["RTQ_TEST_SENTRY"]).open("a") as file:
            for item in self._items:
                file.write(json.dumps(item) + "\n")
        self._items = []


sentry_sdk.init(
    dsn="http://key@127.0.0.1:1/1",
    transport=FileTransport,
    traces_sample_rate=1.0,
    integrations=[RTQIntegration()],
)
