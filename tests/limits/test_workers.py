"""Workers keep to the limits of queues and clients, whatever happens to them."""

from django_rtq import JobState
from tests.app import tasks
from tests.support.waiting import wait_until


def assert_rate_holds(entries, starts, seconds, *, more):
    """In no time there are more starts than the rate allows, and `more`: a burst, and what has been claimed."""
    times = sorted(entry.at for entry in entries)
    for i, began in enumerate(times):
        for n, ended in enumerate(times[i:], 1):
            assert n <= more + 1 + starts * (ended - began) / seconds


def test_a_client_starts_no_more_than_its_rate_allows_and_all_that_it_has(rtq_worker, journal):
    jobs = [
        tasks.note.using(client=client).delay(f"{client}-{number}")
        for number in range(30)
        for client in ("slow", "free")
    ]
    rtq_worker("--processes", 3, **{"QUEUES": {"default": {"clients": {"slow": {"rate": "20/s"}}}}})
    wait_until(lambda: all(job.state is JobState.SUCCEEDED for job in jobs))

    slow = [entry for entry in journal.entries("start") if entry.name.startswith("slow")]
    assert len(slow) == 30
    burst = 2  # what starts in a tenth of a second; no process holds more before it starts them
    assert_rate_holds(slow, 20, 1.0, more=burst + 3 * burst)


def test_clients_get_equal_times_where_turns_go_by_seconds(rtq_worker, journal):
    for client, seconds, jobs in (("long", 0.05, 60), ("short", 0.005, 900)):
        tasks.sleep.using(client=client).delay_many([((f"{client}-{n}", seconds), {}) for n in range(jobs)])
    rtq_worker("--processes", 2, **{"QUEUES": {"default": {"fair_by": "seconds"}}})
    wait_until(lambda: sum(entry.name.startswith("long") for entry in journal.entries("end")) >= 20, 60)

    ends = sorted(journal.entries("end"), key=lambda entry: entry.at)
    last = [entry for entry in ends if entry.name.startswith("long")][19].at
    began = {entry.name: entry.at for entry in journal.entries("start")}
    used = {"long": 0.0, "short": 0.0}
    for entry in ends:
        if entry.at <= last:
            used[entry.name.partition("-")[0]] += entry.at - began[entry.name]
    assert 0.25 < used["long"] / sum(used.values()) < 0.8  # by jobs it would be 0.9
