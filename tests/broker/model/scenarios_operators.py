"""Stories of people who take matters into their own hands."""

from __future__ import annotations

from django_rtq.broker.messages import NewJob
from tests.broker.model.parallel_run import LEASE_MS, RESULT_MS, Twins
from tests.broker.model.scenarios import DONE, ERROR, KEEP_MS, PROGRESS, run, send


def people_cancel(twins: Twins) -> None:
    waits, runs, dies, fails = ids = send(twins, *"abcd", client="acme")
    (scheduled,) = send(twins, "e", due="+3000")
    twins.claim("w0", ("mail",), 4)
    run(twins, "release", [waits])
    run(twins, "bury", [dies], 1, ERROR)
    run(twins, "retry", [fails], 3000, 1, ERROR)
    (behind,) = send(twins, "f", client="acme")
    for job_id in (*ids, scheduled, behind, "nobody") * 2:
        twins.cancel("mail", job_id)
        twins.find("mail", job_id)
    twins.advance(RESULT_MS)
    twins.trim("mail")
    twins.enqueue("mail", [NewJob(waits, 0, 0, "acme", "", "", "", "{}")])  # named in its lane, still
    twins.claim("w0", ("mail",))
    twins.claim("w1", ("mail",), 3)
    run(twins, "ack", [runs], KEEP_MS, DONE)


def people_stop_what_runs(twins: Twins) -> None:
    ids = send(twins, *"abcdefgh", client="acme", max_crashes=3)
    (stays,) = send(twins, "stays")
    twins.claim("w0", ("mail",), 9)
    for job_id in ids:
        twins.report_progress("mail", "w0", job_id, PROGRESS)
        twins.report_progress("mail", "w1", job_id, PROGRESS)  # not its own
        twins.cancel("mail", job_id)
    twins.cancel("mail", ids[0], terminate=True)
    twins.cancel("mail", ids[0])  # the harder wish stays
    run(twins, "finish_cancel", ids[:1], KEEP_MS, '{"state":"cancelled"}', worker="w1")
    run(twins, "finish_cancel", ids[:1], KEEP_MS, '{"state":"cancelled"}', times=2)
    run(twins, "ack", ids[1:2], KEEP_MS, DONE)  # it was quicker
    run(twins, "retry", ids[2:3], 0, 1, ERROR, times=2)
    run(twins, "bury", ids[3:4], 1, ERROR, times=2)
    run(twins, "release", [ids[4], stays], times=2)
    for job_id in (*ids, "nobody"):
        twins.find("mail", job_id)
    run(twins, "expire", ids[5:6], KEEP_MS, '{"state":"expired"}')
    twins.reclaim_child("mail", "w0", ids)
    for job_id in ids:
        twins.cancel("mail", job_id)
    twins.claim("w1", ("mail",), 9)
    twins.cancel("mail", stays)
    for _ in range(3):
        twins.advance(LEASE_MS // 2)
        twins.renew(["nobody"])
    twins.reclaim("mail")


def who_stops_leaves_nothing(twins: Twins) -> None:
    ids = send(twins, *"ab", client="acme", max_crashes=3)
    twins.claim("w0", ("mail",), 2)
    for job_id in ids:
        twins.cancel("mail", job_id)
        twins.report_progress("mail", "w0", job_id, PROGRESS)
    run(twins, "retry", ids[:1], 0, 1, ERROR)
    twins.promote("mail")
    twins.cancel("mail", ids[0])
    twins.claim("w1", ("mail",), 2)
    twins.cancel("mail", ids[1])


def people_purge(twins: Twins) -> None:
    ids = send(twins, *"abc", client="x")
    send(twins, *"de", client="y", priority=5)
    send(twins, "f", due="+3000")
    twins.cancel("mail", ids[1])
    for limit in (1, 2, 100, 100, 100):
        twins.purge("mail", limit)
    send(twins, "g", client="z")
    twins.claim("w0", ("mail",), 1)


def people_pause(twins: Twins) -> None:
    send(twins, "a", "b")
    twins.claim("w0", ("mail",))
    twins.sign_off("w0")  # it holds a job
    twins.pause("mail")
    twins.advance(1)
    twins.pause("mail")
    twins.claim("w1", ("mail", "bulk"), 2)
    twins.take_token("mail", "work_signal")
    twins.resume("mail")
    twins.resume("mail")
    twins.take_token("mail", "work_signal")
    twins.sign_off("w1")


def people_let_jobs_run_before_their_time(twins: Twins) -> None:
    fails, runs = send(twins, "a", "b", client="acme")
    (scheduled,) = send(twins, "c", due="+3000", client="acme")
    twins.claim("w0", ("mail",), 2)
    run(twins, "retry", [fails], 5000, 1, ERROR)
    for job_id in (scheduled, fails, runs, "nobody") * 2:
        twins.run_now("mail", job_id)
        twins.find("mail", job_id)
    twins.claim("w1", ("mail",), 3)
    run(twins, "ack", [runs], KEEP_MS, DONE)
    twins.run_now("mail", runs)
    twins.advance(5000)
    twins.promote("mail")


def people_change_arguments(twins: Twins) -> None:
    ids = send(twins, "a", "b", client="acme", expires="+9000")
    twins.claim("w0", ("mail",), 2)
    run(twins, "bury", ids, 1, ERROR)
    seen = twins.clock.now
    twins.requeue_changed("mail", seen - 1, ids[0], '{"later":1}')
    for job_id in (ids[0], ids[0], "nobody"):
        twins.requeue_changed("mail", seen, job_id, '{"args":["100 %1\\n"]}')
    twins.advance(1)
    twins.claim("w0", ("mail",))
    run(twins, "bury", ids[:1], 1, ERROR)
    twins.requeue_changed("mail", seen, ids[0], '{"stale":1}')


def people_release_a_worker(twins: Twins) -> None:
    send(twins, *"abc", client="acme")
    twins.claim("w0", ("mail",), 2)
    twins.release_worker("mail", "w0")  # it lives
    twins.advance(LEASE_MS - 1)
    twins.release_worker("mail", "w0")
    twins.advance(1)
    for worker in ("w0", "w0", "nobody"):
        twins.release_worker("mail", worker)
    twins.sign_on("w2")
    twins.claim("w2", ("mail",), 3)


PEOPLE_STORIES = (
    people_cancel,
    people_stop_what_runs,
    who_stops_leaves_nothing,
    people_purge,
    people_pause,
    people_let_jobs_run_before_their_time,
    people_change_arguments,
    people_release_a_worker,
)
