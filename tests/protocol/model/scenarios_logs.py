"""Scenarios: jobs log lines, some of them are sent again, and they go with their jobs."""

from tests.protocol.model.outcomes import KEPT_LINES, LINE
from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import DONE, ERROR, KEEP_MS, run, send
from tests.protocol.model.state import DEAD_MS


def jobs_log_lines(parallel: ParallelRun) -> None:
    (job_id,) = send(parallel, "a", claimed=1)
    parallel.append_log("mail", "w1", job_id, "b-1", LINE)  # not its own
    for number in (1, 1, 2, 10, 2, 10):
        parallel.append_log("mail", "w0", job_id, f"a-{number}", LINE, "[]")
    parallel.append_log("mail", "w0", job_id, "c-3", LINE)
    parallel.append_log("mail", "w0", job_id, "c-4")
    for number in (5, 6):
        parallel.append_log("mail", "w0", job_id, f"c-{number}", *map(str, range(KEPT_LINES // 2 + 9)))
    parallel.append_log("mail", "w0", job_id, "c-7", "last", over_ms=KEEP_MS)
    run(parallel, "ack", [job_id], KEEP_MS, DONE)
    parallel.append_log("mail", "w0", job_id, "c-8", "too late")


def lines_of_many_jobs_are_kept(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcde", claimed=9)
    for place, job_id in enumerate(ids):
        parallel.append_log("mail", "w0", job_id, "a-1", LINE, over_ms=KEEP_MS + place)
        parallel.append_log("mail", "w0", job_id, "a-1", LINE, over_ms=KEEP_MS + place)
    parallel.advance(KEEP_MS + len(ids))
    (silent,) = send(parallel, "silent", claimed=9)
    parallel.append_log("mail", "w0", silent, "a-2", over_ms=KEEP_MS)
    parallel.append_log("mail", "w0", ids[0], "a-2", LINE, over_ms=KEEP_MS)


def lines_go_with_their_jobs(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcdef", client="acme", claimed=9)
    for job_id in ids:
        parallel.append_log("mail", "w0", job_id, "a-1", LINE)
    run(parallel, "bury", ids[:3], 1, ERROR)
    parallel.discard("mail", ids[:1])
    parallel.discard("mail", ids[3:4])
    run(parallel, "retry", ids[3:], 60_000, 1, ERROR)
    parallel.cancel("mail", ids[3])
    parallel.requeue_elsewhere("mail", [ids[2]], "bulk")
    parallel.cancel("mail", ids[4])
    parallel.purge("mail", 100)
    parallel.trim_after(DEAD_MS + 1, 1)
