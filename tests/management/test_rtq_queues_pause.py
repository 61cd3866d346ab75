"""rtq_queues pause: pausing queues by name."""

from tests.management.commands import run


def test_queues_are_paused_and_it_says_so(broker, inspector):
    broker.register_queues(["high", "low", "default"])

    ran = run("rtq_queues", "pause", "high", "low", "high")

    assert [queue.name for queue in inspector.queues.details() if queue.paused] == ["high", "low"]
    assert ran.out.splitlines() == [
        "Queue high is paused. Resume it with  python manage.py rtq_queues resume high",
        "Queue low is paused. Resume it with  python manage.py rtq_queues resume low",
    ]


def test_pausing_twice_is_no_error(broker):
    broker.register_queues(["high"])
    run("rtq_queues", "pause", "high")

    assert run("rtq_queues", "pause", "high").out == "Queue high was paused already.\n"


def test_one_unknown_name_and_nothing_is_paused(broker, inspector):
    broker.register_queues(["high", "low"])

    ran = run("rtq_queues", "pause", "high", "lwo")

    assert (ran.code, ran.error) == (1, "No queue 'lwo' is declared, or has been used yet. Did you mean 'low'?")
    assert not any(queue.paused for queue in inspector.queues.details())


def test_a_declared_queue_that_was_never_used_is_paused(broker, inspector, settings):
    settings.RTQ = {**settings.RTQ, "QUEUES": {"night": {}}}

    assert run("rtq_queues", "pause", "night").out.startswith("Queue night is paused.")
    assert inspector.queues.get("night").paused
    assert run("rtq_queues", "pause", "nightx").error == (
        "No queue 'nightx' is declared, or has been used yet. Did you mean 'night'?"
    )


def test_it_can_be_silent(broker):
    broker.register_queues(["high"])

    assert run("rtq_queues", "pause", "high", verbosity=0).out == ""


def test_for_programs_it_is_json(broker):
    broker.register_queues(["high", "low"])
    run("rtq_queues", "pause", "low")

    assert run("rtq_queues", "pause", "high", "low", "--json").json == {"paused": ["high", "low"], "changed": ["high"]}
    assert run("rtq_queues", "resume", "high", "--json").json == {"resumed": ["high"], "changed": ["high"]}
