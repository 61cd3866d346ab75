"""How far a job is."""

from tests.support.jobs import QUEUE, WORKER, claimed_job
from tests.support.snapshots import changes, snapshot

LINE = '{"done":3,"total":10,"text":"pages"}'


def test_it_is_noted_with_the_servers_time(redis, broker, readers):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    broker.report_progress(WORKER, [(QUEUE, job.id, LINE)])

    assert changes(before, snapshot(redis, times=False)) == {"progress": {"a": f"<ms> {LINE}"}}
    progress = readers.find(job.id).progress
    assert (progress.done, progress.total, progress.text) == (3, 10, "pages")
    assert progress.at.year >= 2025
    assert str(progress) == "3/10 pages"


def test_what_cannot_be_read_is_no_progress(redis, broker, readers):
    job = claimed_job(broker, "a")
    for line in ("", "x", "1 x", "1 []", "x {}", '1 {"done":1}'):
        redis.hset(broker.keys.of(QUEUE).progress, job.id, line)

        assert readers.find(job.id).progress is None
