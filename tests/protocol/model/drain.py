"""Runs queues in any state until they are empty: every job must finish, and no key may be left."""

from tests.protocol.model.keyspace import FIXED, read_keyspace
from tests.protocol.model.parallel_run import QUEUES, ParallelRun
from tests.protocol.model.state import RESULT_MS

LAST_MS = 60_000  # longer than any job waits for its time
ROUNDS = 500


def drain(parallel: ParallelRun) -> None:
    """Everything is worked off, within the limits that let every client go on."""
    for queue in QUEUES:
        limits = parallel.models[queue].limit_sources
        texts = {name: f"{name} {text}" for name, text in limits.items()}
        stops = ("paused:", "rate=", "max_running=0")
        ends = [name for name, text in texts.items() if any(stop in text for stop in stops)]
        parallel.change_limits(queue, dict.fromkeys(ends, ""))
        parallel.resume(queue)
        for task in list(parallel.models[queue].task_pauses):
            while task in parallel.models[queue].task_pauses:
                parallel.resume_task(queue, task, 2)
        for worker in list(parallel.models[queue].workers):
            parallel.reclaim_child(queue, worker, [])
    parallel.advance(LAST_MS)
    parallel.sign_on("last")
    promote_all(parallel)
    work_off(parallel)
    while any(model.scheduled for model in parallel.models.values()):  # those who waited for the end of others
        promote_all(parallel)
        work_off(parallel)
    for queue in QUEUES:
        parallel.change_limits(queue, dict.fromkeys(parallel.models[queue].limit_sources, ""))
        parallel.discard(queue, list(parallel.models[queue].dead))
    parallel.sign_off("last")
    parallel.advance(RESULT_MS)
    for queue in QUEUES:
        parallel.trim(queue)
        while parallel.models[queue].results:
            parallel.trim(queue)
    left = left_over(parallel)
    assert left == {"rtq:queues"}, left


def left_over(parallel: ParallelRun) -> set[str]:
    """Keys that should be gone, and do not go by themselves."""
    keyspace = read_keyspace(parallel.redis)
    return {key for key in keyspace if not is_fixed(key)}


def promote_all(parallel: ParallelRun) -> None:
    """Whatever is due is queued."""
    for queue in QUEUES:
        while any(due <= parallel.clock.now for due in parallel.models[queue].scheduled.values()):
            parallel.promote(queue)


def work_off(parallel: ParallelRun) -> None:
    """One worker does what there is to claim."""
    parallel.claim("last", QUEUES, 5)
    for _ in range(ROUNDS):
        parallel.fetch("last", {queue: {"ack": held_by(parallel, queue)} for queue in QUEUES}, QUEUES, wanted=5)
        if not any(model.bands or model.running["last"] for model in parallel.models.values()):
            return
    raise AssertionError("there is work, and nobody gets it")


def held_by(parallel: ParallelRun, queue: str) -> list[tuple[str, int, str]]:
    """What the last worker holds, as settled."""
    return [(job_id, RESULT_MS, "") for job_id in parallel.models[queue].running["last"]]


def is_fixed(key: str) -> bool:
    """Whether a key may stay when there is no job."""
    name = key.rpartition("}:")[2]
    return name in FIXED or name.startswith(("stats:", "hours:", "tasks:", "failed_runs:", "log:"))
