"""Turns between clients, with workers that claim batches and cut them (G6)."""

from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, records
from tests.support.waiting import wait_until

CLIENTS, ROUNDS = 40, 6


def test_batches_that_are_cut_change_nothing_about_the_turns(rtq_worker, redis, journal):
    tasks.note.using(client="0").delay_many([((f"warm-{i}",), {}) for i in range(300)])  # so that batches are large
    in_turn = []
    for turn in range(ROUNDS):
        for client in range(CLIENTS):
            if client % 10 == 5 and turn:
                continue  # who has but one job would lose most
            name = f"{turn}-{client}"
            slow = tasks.sleep if (turn * CLIENTS + client) % 17 == 0 else None
            in_turn.append(name)
            using = {"client": str(client), "priority": -1}
            slow.using(**using).delay(name, 0.01) if slow else tasks.note.using(**using).delay(name)

    worker = rtq_worker()
    wait_until(lambda: not records(redis))
    worker.stop()

    assert [name for name in journal.names() if not name.startswith("warm")] == in_turn
    assert_all_settled(redis)
