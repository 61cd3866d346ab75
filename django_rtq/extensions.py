"""The apps that join in with the core: the one place that knows all of them."""

from django_rtq.core.extension import Extension

EXTENSIONS: list[Extension] = [
    Extension(  # databases
        check_tables="django_rtq.databases.checks:check_tables",
        exactly_once="django_rtq.databases.exactly_once",
        internal_task="django_rtq.databases.exactly_once:delete_committed_jobs",
        outbox="django_rtq.databases.outbox",
        relay="django_rtq.databases.relay:OutboxRelay",
        schedules="django_rtq.databases.schedule_rows:deletions_of_rows",
    ),
    Extension(other_queues="django_rtq.compat.other_queues"),
    Extension(task_backends="django_rtq.backend.compat:task_backends"),
    Extension(email_check="django_rtq.mail:check_settings"),
    Extension(broker_in_tests="django_rtq.testing.suite:find_broker"),
    Extension(  # limits
        duties="django_rtq.limits.store:duties",
        limit_kinds="django_rtq.limits.limit_kinds:LIMIT_KINDS",
        limits="django_rtq.limits.store:LimitStore",
    ),
    Extension(  # workflows
        argument_kinds="django_rtq.workflows.results:ResultOf",
        chores="django_rtq.workflows.for_core:chores",
        forgetting="django_rtq.workflows.for_core:forgetting",
        run_part="django_rtq.workflows.run_part:FlowPart",
        send_event="django_rtq.workflows.steps.store:send",
        settling="django_rtq.workflows.for_core:settle_members",
        workflows="django_rtq.workflows.store",
    ),
    Extension(batches="django_rtq.workflows.batches"),
    Extension(  # scale
        placement="django_rtq.scale.placement",
        servers="django_rtq.scale.settings",
        shards_broker="django_rtq.scale.sharded:AllShardsBroker",
        supervisors="django_rtq.scale.supervisors:run_in_each",
    ),
    Extension(at_start="django_rtq.models:copy_schedules"),
    Extension(  # console
        forgetting="django_rtq.console.roll_up:RollUp",
        check_incidents="django_rtq.console.incident_options:check_incidents",
        incident_watcher="django_rtq.console.incidents.watcher:IncidentWatcher",
        internal_task="django_rtq.console.internal_tasks:run_bulk_action",
        job_logs="django_rtq.console.job_logs:collect_logs",
        requeue="django_rtq.console.reading.actions:requeue",
        run_metrics="django_rtq.console.run_metrics:CountedRuns",
        server_problems="django_rtq.console.server_info:problems_of",
        waiting_reason="django_rtq.console.reading.jobs.waiting_reason:read_reason",
    ),
]
