"""The apps that join in with the core: the one place that knows all of them."""

from django_rtq.core.extension import Extension

EXTENSIONS: list[Extension] = [
    Extension(  # databases
        exactly_once="django_rtq.databases.exactly_once.ExactlyOnce",
        outbox="django_rtq.databases.outbox_calls.OUTBOX",
        relay="django_rtq.databases.relay.OutboxRelay",
    ),
    Extension(broker_in_tests="django_rtq.testing.suite.find_broker"),
    Extension(limits="django_rtq.limits.store.LimitStore", chores="django_rtq.limits.store.chores"),
    Extension(stored_workflow="django_rtq.workflows.store.make_stored"),
    Extension(at_start="django_rtq.models.copy_schedules"),
]
