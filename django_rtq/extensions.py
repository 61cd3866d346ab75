"""The apps that join in with the core: the one place that knows all of them."""

from django_rtq.core.extension import Extension

EXTENSIONS: list[Extension] = [
    Extension(  # databases
        check_tables="django_rtq.databases.checks.check_tables",
        exactly_once="django_rtq.databases.exactly_once.ExactlyOnce",
        internal_task="django_rtq.databases.committed_jobs.delete_committed_jobs",
        outbox="django_rtq.databases.outbox.OUTBOX",
        relay="django_rtq.databases.relay.OutboxRelay",
        schedules="django_rtq.databases.schedule_rows.deletions_of_rows",
    ),
    Extension(  # compat
        apply_async="django_rtq.compat.other_queues.checked_options",
        import_cure="django_rtq.compat.other_queues.import_cure",
        no_attribute="django_rtq.compat.other_queues.no_attribute",
        option_cure="django_rtq.compat.other_queues.option_cure",
    ),
    Extension(email_check="django_rtq.mail.check_settings"),
    Extension(broker_in_tests="django_rtq.testing.suite.find_broker"),
    Extension(  # limits
        duties="django_rtq.limits.store.duties",
        limits="django_rtq.limits.store.LimitStore",
        read_limit="django_rtq.limits.limit_kinds.read_limit",
    ),
    Extension(  # workflows
        argument_kinds="django_rtq.workflows.results.ResultOf",
        chores="django_rtq.workflows.for_core.chores",
        forgetting="django_rtq.workflows.for_core.forgetting",
        member_cancelled="django_rtq.workflows.store.tell_cancelled",
        run_part="django_rtq.workflows.run_part.FlowPart",
        send_event="django_rtq.workflows.steps.store.send",
        settling="django_rtq.workflows.for_core.settle_members",
        stored_workflow="django_rtq.workflows.store.make_stored",
    ),
    Extension(  # batches
        call_runner="django_rtq.workflows.batches.CallRunner",
        gatherer="django_rtq.workflows.batches.CallGatherer",
    ),
    Extension(  # scale
        check_shards="django_rtq.scale.placement.check_limits",
        check_together="django_rtq.scale.placement.check_together",
        new_ids="django_rtq.scale.placement.new_ids",
        place_of_shard="django_rtq.scale.placement.place_of_shard",
        sentinels="django_rtq.scale.settings.behind_sentinels",
        servers="django_rtq.scale.settings.from_servers",
        shard_config="django_rtq.scale.placement.config_of_shard",
        shard_of_schedule="django_rtq.scale.placement.shard_of_schedule",
        shards_broker="django_rtq.scale.sharded.AllShardsBroker",
        supervisors="django_rtq.scale.supervisors.run_in_each",
    ),
    Extension(at_start="django_rtq.models.copy_schedules"),
    Extension(  # console
        forgetting="django_rtq.console.roll_up.RollUp",
        check_incidents="django_rtq.console.incident_options.check_incidents",
        incident_watcher="django_rtq.console.incidents.watcher.IncidentWatcher",
        internal_task="django_rtq.console.internal_tasks.run_bulk_action",
        job_logs="django_rtq.console.job_logs.collect_logs",
        requeue="django_rtq.console.reading.actions.requeue",
        run_metrics="django_rtq.console.run_metrics.CountedRuns",
        server_problems="django_rtq.console.server_info.problems_of",
        waiting_reason="django_rtq.console.reading.jobs.waiting_reason.find_waiting",
    ),
]
