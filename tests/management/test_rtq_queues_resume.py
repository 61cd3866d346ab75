"""rtq_queues resume: going on with paused queues."""

from tests.management.commands import run


def test_queues_go_on_and_it_says_so(broker, inspector):
    broker.register_queues(["high", "low"])
    inspector.pause("high")

    ran = run("rtq_queues", "resume", "high", "low")

    assert not any(queue.paused for queue in inspector.queues.details())
    assert ran.out.splitlines() == ["Resumed queue high.", "Queue low was not paused."]


def test_one_unknown_name_and_nothing_goes_on(broker, inspector):
    broker.register_queues(["high"])
    inspector.pause("high")

    ran = run("rtq_queues", "resume", "high", "hihg")

    assert (ran.code, ran.error) == (1, "No queue 'hihg' is declared, or has been used yet. Did you mean 'high'?")
    assert inspector.queues.details()[0].paused
