"""What tests of the core use of apps. Where there is no such app, as in `make test-core`, the test is skipped."""

from importlib.util import find_spec

import pytest
from django.utils.module_loading import import_string


def of_app(path):
    """A function or class of an app, imported when it is called."""

    def call(*args, **options):
        app = ".".join(path.split(".")[:2])
        if find_spec(app) is None:
            pytest.skip(f"without {app}")
        return import_string(path)(*args, **options)

    return call


def needs(app):
    """Marks a test that needs an app: needs("limits")."""
    return pytest.mark.skipif(find_spec(f"django_rtq.{app}") is None, reason=f"without django_rtq.{app}")


Place = of_app("django_rtq.console.nouns.Place")
Readers = of_app("django_rtq.console.reading.readers.Readers")
captured = of_app("django_rtq.testing.captured")
drain = of_app("django_rtq.testing.drain")
eager = of_app("django_rtq.testing.eager")
look = of_app("django_rtq.console.incidents.look")
readers_of = of_app("django_rtq.console.reading.readers.readers_of")
member_id = of_app("django_rtq.workflows.store.member_id")
outbox_rows = of_app("django_rtq.databases.outbox.outbox_rows")
redacted = of_app("django_rtq.console.redaction.redacted")
relay = of_app("django_rtq.databases.relay.relay")
workflow = of_app("django_rtq.workflows.builder.workflow")
