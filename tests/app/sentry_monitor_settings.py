"""Settings of workers that monitor schedules, and write what Sentry gets to a file at once: also if they are killed."""

import json
import os
from pathlib import Path

import sentry_sdk
from sentry_sdk.transport import Transport

from django_rtq.monitoring.sentry import RTQIntegration
from tests.settings import *  # noqa: F403


class FileTransport(Transport):
    """Appends the payload of each item to a file, a JSON object a line."""

    def capture_envelope(self, envelope):
        for item in envelope.items:
            if item.payload.json:
                with Path(os.environ["RTQ_TEST_SENTRY"]).open("a") as file:
                    file.write(json.dumps(item.payload.json) + "\n")


sentry_sdk.init(
    dsn="http://key@127.0.0.1:1/1", transport=FileTransport, integrations=[RTQIntegration(monitor_schedules=True)]
)
