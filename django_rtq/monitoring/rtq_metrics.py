"""manage.py rtq_metrics: print the metrics for Prometheus, or serve them."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.core.commands.command import RTQCommand, whole_number


class Command(RTQCommand):
    takes_shard = False
    help = "Print the metrics for Prometheus once, or serve them on a port."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 printed, or stopped by SIGTERM or Ctrl-C; 1 Redis did not answer, the port is in use, or "
            "prometheus_client is not installed; 64 wrong usage. While it serves and Redis does not answer, scrapes "
            "get 503."
        )
        text = "Serve them on this port until stopped; 0: a free one."
        parser.add_argument("--port", type=whole_number(0, 65_535), help=text)
        parser.add_argument("--address", default="127.0.0.1", help="The address to listen on. Default: 127.0.0.1.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from django_rtq.monitoring import prometheus
        except ImportError as error:
            raise CommandError(str(error)) from error
        if options["port"] is None:
            self.stdout.write(prometheus.metrics_text(backend=options["backend"])[1].decode(), ending="")
            return
        try:
            server = prometheus.metrics_server(options["address"], options["port"], options["backend"])
        except OSError as error:
            raise CommandError(f"cannot listen on {options['address']}:{options['port']}: {error}") from error

        def stop(number: int, frame: FrameType | None) -> None:
            threading.Thread(target=server.shutdown, daemon=True).start()  # it waits for serve_forever(), which is here

        handlers = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            host, port = server.server_address[:2]
            self.stderr.write(f"serving metrics on http://{host!s}:{port}/")
            server.serve_forever()
        finally:
            server.server_close()
            for number, handler in handlers.items():
                signal.signal(number, handler)
