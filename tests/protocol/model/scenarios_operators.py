"""Scenarios: what operators do, such as pausing, cancelling, requeueing and discarding."""

from django_rtq.core.broker.messages import NewJob
from tests.protocol.model.outcomes import LINE
from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import DONE, ERROR, KEEP_MS, PROGRESS, new_job, run, send, unique_job
from tests.protocol.model.state import LEASE_MS


def people_purge_one_client(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:blocked": "max_running=0"})
    send(parallel, "e", "f", client="blocked", priority=9, claimed=1)  # nobody else waits there
    for client in ("acme", "other", "blocked"):
        send(parallel, *(f"{client}{place}" for place in "abc"), client=client)
        send(parallel, f"{client}d", client=client, priority=5)
        send(parallel, f"{client}e", client=client, due="+60000")
    for client in ("acme", "nobody", "blocked"):
        for _ in range(5):
            parallel.purge("mail", 2, client)
    parallel.claim("w0", ("mail",), 9)


def people_cancel_all_of_a_client(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abc", client="acme")
    others = send(parallel, *"de", client="other")
    (delayed,) = send(parallel, "f", client="acme", due="+60000")
    parallel.cancel("mail", ids[1])  # it stays in its lane
    for job_id in (*ids, *others, delayed):
        parallel.cancel("mail", job_id)
    parallel.claim("w0", ("mail",), 9)


def people_stop_what_runs(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcdefgh", client="acme", max_crashes=3)
    (stays,) = send(parallel, "stays", claimed=9)
    for job_id in ids:
        parallel.report_progress("mail", "w0", job_id, PROGRESS)
        parallel.report_progress("mail", "w1", job_id, PROGRESS)  # not its own
        parallel.cancel("mail", job_id)
    parallel.cancel("mail", ids[0], terminate=True)
    parallel.cancel("mail", ids[0])  # the harder wish stays
    run(parallel, "finish_cancel", ids[:1], KEEP_MS, '{"state":"cancelled"}', worker="w1")
    run(parallel, "finish_cancel", ids[:1], KEEP_MS, '{"state":"cancelled"}', times=2)
    run(parallel, "ack", ids[1:2], KEEP_MS, DONE)  # it was quicker
    run(parallel, "retry", ids[2:3], 0, 1, ERROR, times=2)
    run(parallel, "bury", ids[3:4], 1, ERROR, times=2)
    run(parallel, "release", [ids[4], stays], times=2)
    for job_id in (*ids, "nobody"):
        parallel.find("mail", job_id)
    run(parallel, "expire", ids[5:6], KEEP_MS, '{"state":"expired"}')
    parallel.reclaim_child("mail", "w0", ids)
    for job_id in ids:
        parallel.cancel("mail", job_id)
    parallel.claim("w1", ("mail",), 9)
    parallel.cancel("mail", stays)
    for _ in range(3):
        parallel.advance(LEASE_MS // 2)
        parallel.renew(["nobody"])
    parallel.reclaim("mail")


def people_purge(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abc", client="x")
    send(parallel, *"de", client="y", priority=5)
    send(parallel, "f", due="+3000")
    parallel.cancel("mail", ids[1])
    for limit in (1, 2, 100, 100, 100):
        parallel.purge("mail", limit)
    send(parallel, "g", client="z", claimed=1)


def people_pause(parallel: ParallelRun) -> None:
    send(parallel, "a", "b", claimed=1)
    parallel.sign_off("w0")  # it holds a job
    parallel.pause("mail")
    parallel.advance(1)
    parallel.pause("mail")
    parallel.claim("w1", ("mail", "bulk"), 2)
    parallel.accidents.take_token("mail", "work_signal")
    parallel.resume("mail")
    parallel.resume("mail")
    parallel.accidents.take_token("mail", "work_signal")
    parallel.sign_off("w1")


def people_forget_a_queue(parallel: ParallelRun) -> None:
    for queue, workers in (("mail", ("w0", "w1")), ("bulk", ())):
        parallel.forget(queue)  # somebody works for it
        for worker in workers or ("w0", "w1"):
            parallel.sign_off(worker, (queue,))
        parallel.forget(queue, LEASE_MS)  # not for long
    send(parallel, "first")
    parallel.purge("mail")
    parallel.purge("mail")
    parallel.forget("mail")
    parallel.forget("mail")
    (waits,) = send(parallel, "a", client="acme")  # its producer does not know that it was forgotten
    parallel.forget("mail")
    (behind,) = send(parallel, "behind", client="acme")
    parallel.cancel("mail", behind)  # it stays in its lane, and has an outcome
    parallel.sign_on("w0")
    parallel.claim("w0", ("mail",))
    run(parallel, "ack", [waits], KEEP_MS, DONE)
    parallel.sign_off("w0", ("mail",))
    parallel.trim("mail")
    for _ in range(2):
        parallel.forget("mail", discard=True)
        parallel.forget("bulk", LEASE_MS)
        parallel.trim_after(120_000)
    parallel.pause("mail")
    parallel.forget("mail")
    parallel.resume("mail")
    parallel.forget("mail")
    parallel.forget("mail", discard=True)
    parallel.enqueue("mail", [unique_job(parallel, "b")])
    for worker in ("w0", "w1"):
        parallel.sign_on(worker)


def people_let_jobs_run_before_their_time(parallel: ParallelRun) -> None:
    fails, runs = send(parallel, "a", "b", client="acme")
    (scheduled,) = send(parallel, "c", due="+3000", client="acme", claimed=2)
    run(parallel, "retry", [fails], 5000, 1, ERROR)
    for job_id in (scheduled, fails, runs, "nobody") * 2:
        parallel.run_now("mail", job_id)
        parallel.find("mail", job_id)
    parallel.claim("w1", ("mail",), 3)
    run(parallel, "ack", [runs], KEEP_MS, DONE)
    parallel.run_now("mail", runs)
    parallel.promote_after(5000)


def people_change_arguments(parallel: ParallelRun) -> None:
    ids = send(parallel, "a", "b", client="acme", expires="+9000", claimed=2)
    run(parallel, "bury", ids, 1, ERROR)
    seen = parallel.clock.now
    parallel.requeue_changed("mail", seen - 1, ids[0], '{"later":1}')
    for job_id in (ids[0], ids[0], "nobody"):
        parallel.requeue_changed("mail", seen, job_id, '{"args":["100 %1\\n"]}')
    parallel.advance(1)
    parallel.claim("w0", ("mail",))
    run(parallel, "bury", ids[:1], 1, ERROR)
    parallel.requeue_changed("mail", seen, ids[0], '{"stale":1}')


def people_release_a_worker(parallel: ParallelRun) -> None:
    send(parallel, *"abc", client="acme", claimed=2)
    parallel.release_worker("mail", "w0")  # it lives
    parallel.advance(LEASE_MS - 1)
    parallel.release_worker("mail", "w0")
    parallel.advance(1)
    for worker in ("w0", "w0", "nobody"):
        parallel.release_worker("mail", worker)
    parallel.sign_on("w2")
    parallel.claim("w2", ("mail",), 3)


def people_requeue_elsewhere(parallel: ParallelRun) -> None:
    """Dead letters that have more than a record; their order, and what is not dead."""
    dies, again, *_ = ids = send(parallel, *"abcd", client="acme", max_crashes=3, expires="+90000")
    parallel.claim("w0", ("mail",), 2)
    parallel.report_progress("mail", "w0", again, PROGRESS)
    parallel.append_log("mail", "w0", again, "a-1", LINE)
    run(parallel, "retry", [again], 0, 1, ERROR)
    parallel.promote("mail")
    parallel.reclaim_child("mail", "w0", [dies])
    parallel.sign_on("w0")
    parallel.claim("w0", ("mail",), 4)  # what has crashed a worker is claimed alone
    run(parallel, "bury", [dies], 1, ERROR)
    parallel.claim("w0", ("mail",), 4)
    parallel.report_progress("mail", "w0", again, PROGRESS)
    parallel.record_step("mail", "w0", again, "step fetch", "1 2 3")
    run(parallel, "bury", [again], 1, ERROR)
    parallel.advance(1000)
    for _ in range(2):
        parallel.requeue_elsewhere("mail", [again, *ids, "nobody"], "bulk")
    for job_id in ids:
        parallel.find("mail", job_id)
    parallel.enqueue("mail", [NewJob(dies, 0, 0, "acme", "", "", "", "{}")])  # its id is known
    parallel.claim("w1", ("bulk", "mail"), 3)


def people_requeue_elsewhere_and_back(parallel: ParallelRun) -> None:
    """To a queue that was forgotten, and back after a while."""
    for worker in ("w0", "w1"):
        parallel.sign_off(worker, ("bulk",))
    parallel.forget("bulk")
    ids = send(parallel, "a", "b", client="acme")
    for job_id in ids:
        parallel.claim("w0", ("mail",))
        run(parallel, "bury", [job_id], 1, ERROR)
        parallel.requeue_elsewhere("mail", [job_id], "bulk")
        parallel.trim_after(120_000)
    parallel.sign_on("w2")
    parallel.claim("w2", ("bulk",), 2)
    parallel.fetch("w2", {"bulk": {"bury": [(job_id, 1, ERROR) for job_id in ids]}})
    parallel.requeue_elsewhere("bulk", ids, "mail")
    twice = new_job(parallel, "e", client="acme")
    parallel.enqueue("bulk", [twice])
    parallel.enqueue("mail", [twice])  # a torn log may leave it in both
    parallel.claim("w0", ("mail",), 3)
    run(parallel, "bury", [twice.id, ids[0]], 1, ERROR)
    parallel.requeue_elsewhere("mail", [twice.id, ids[0]], "bulk")


def people_requeue_unique_jobs_elsewhere(parallel: ParallelRun) -> None:
    def unique(name: str, queue: str, **options: str) -> str:
        job = unique_job(parallel, name, **options)
        parallel.enqueue(queue, [job])
        return job.id

    first, other = unique("a", "mail"), unique("b", "bulk", due="+3000")
    parallel.claim("w0", ("mail",))
    run(parallel, "bury", [first], 1, ERROR)
    parallel.requeue_elsewhere("mail", [first], "bulk")  # another one holds the digest
    parallel.cancel("bulk", other)
    unique("c", "mail")  # that one holds it here only
    parallel.requeue_elsewhere("mail", [first], "bulk")
    unique("d", "bulk")
    unique("e", "mail")
