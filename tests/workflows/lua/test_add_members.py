"""A running job adds steps to its workflow."""

from contextlib import suppress

import pytest

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.workflows import workflow_store
from django_rtq.workflows.steps.store import Holder
from tests.protocol.test_torn_log import copy_of, restore, writes_of
from tests.support.jobs import QUEUE, WORKER
from tests.support.snapshots import changes, snapshot
from tests.support.workflows import FLOW, begun_flow, claim_members, claimed_flow, end, fields_of, states_of

CALL = "0 3    \n{}\n"
CHAIN = ({"next": "1"}, {"after": "0"})


def holder_of(broker, member, *, worker=WORKER, claimed_ms=None):
    run = broker.redis.execute_one(("HGET", broker.keys.of(QUEUE).running(worker), member.id))
    claimed = int(run.split()[1]) if run and claimed_ms is None else claimed_ms or 0
    return Holder(QUEUE, member.id, worker, claimed)


def step(size=1, *, first=0, after="", next="", keep="", queue=QUEUE):
    return ["t", queue, size, first, keep, "0" if size else "", after, next]


def add(broker, member, *steps, shape="s", **options):
    """Add steps, with one part each."""
    parts = [(f"{number}:0", CALL * texts[2]) for number, texts in enumerate(steps) if texts[2]]
    texts = [text for texts in steps for text in texts]
    return workflow_store(broker).add(holder_of(broker, member, **options), shape, texts, parts)


def test_what_waits_after_its_step_waits_for_them_too(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)

    assert add(broker, member, step(2)) == ("ok", "")

    added = claim_members(broker)
    assert [job.id[-6:] for job in added] == ["000002", "000003"]
    end(broker, "ack", member)
    assert states_of(broker) == ["succeeded", "waiting", "started"]
    end(broker, "ack", *added)
    assert states_of(broker) == ["succeeded", "started", "succeeded"]
    end(broker, "ack", *claim_members(broker))
    assert fields_of(broker)["state"] == "succeeded"


@pytest.mark.parametrize("before", [7, 8, 97])
def test_members_belong_to_the_step_behind_empty_ones(redis, broker, before):
    """These begin with the same number. One of them adds a step in its turn, for which what follows waits."""
    begun_flow(broker, *[{}] * before, {"next": f"{before + 1}"}, {"after": f"{before}"})
    *_, member = members = claim_members(broker, 200)

    add(broker, member, step(0), step(2))
    end(broker, "ack", *members)
    first, second = claim_members(broker)
    add(broker, first, step())
    end(broker, "ack", first, second)
    assert states_of(broker)[before + 1 :] == ["waiting", "succeeded", "succeeded", "started"]
    end(broker, "ack", *claim_members(broker))
    end(broker, "ack", *claim_members(broker))

    assert fields_of(broker)["state"] == "succeeded"


def test_it_is_known_what_waits_for_what(redis, broker):
    """2 and 3 are new; 1 waits for 3, which waits for 2. 4 and 5 are new, and 6 waits for both."""
    first, second = claimed_flow(broker, {"size": 2, "next": "1"}, {"after": "0"})

    add(broker, first, step(next="1"), step(first=1, after="0"))
    add(broker, second, step(next="2"), step(first=1, next="2"), step(first=2, after="0 1"))

    fields = fields_of(broker)
    assert [fields[f"after:{number}"].split() for number in range(7)] == [
        *([], ["0", "3", "6"], [], ["2"], [], [], ["4", "5"]),
    ]
    assert [fields[f"next:{number}"].split() for number in range(7)] == [["1"], [], ["3"], ["1"], ["6"], ["6"], ["1"]]
    assert [snapshot(redis)[f"step_waits:{FLOW}:{number}"] for number in (1, 6)] == [{"0", "3", "6"}, {"4", "5"}]
    assert snapshot(redis)[f"workflow_steps:{FLOW}"] == {"0": 0, "1": 2, "2": 3, "3": 4, "4": 5, "5": 6, "6": 7}


def test_one_that_never_starts_waits_for_none(redis, broker):
    first, second = claimed_flow(broker, {"next": "2"}, {"next": "2"}, {"after": "0 1"})
    end(broker, "expire", first)
    assert states_of(broker) == ["failed", "started", "skipped"]

    add(broker, second, step())

    assert f"step_waits:{FLOW}:2" not in snapshot(redis)
    end(broker, "ack", second, *claim_members(broker))
    assert fields_of(broker)["state"] == "failed"


def test_another_run_with_the_same_steps_goes_on(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)
    queues = [broker.keys.of(QUEUE)] * 2
    head = (FLOW, member.id, WORKER, holder_of(broker, member).claimed_ms, "s")
    texts = [*step(2, next="1"), *step(first=2, after="0")]
    first = SCRIPTS["add_members"].call_many(queues, (*head, "", len(texts), *texts, "0:0", CALL * 2))
    assert broker.redis.execute_one(first) == [b"ok"]
    assert claim_members(broker) == []

    last = SCRIPTS["add_members"].call_many(queues, (*head, "1", 0, "1:0", CALL))
    assert broker.redis.execute_one(last) == [b"ok", b"2:0", QUEUE.encode()]

    assert states_of(broker) == ["started", "waiting", "started", "waiting"]
    assert fields_of(broker)["added:0"] == "2 2 2 whole"
    assert snapshot(redis)[f"waiting_members:{FLOW}"].keys() == {"1:0", "2:0", "3:0"}


def test_at_any_depth(redis, broker):
    """The second one adds a step, and the one after both waits for that, too."""
    (member,) = claimed_flow(broker, *CHAIN)
    add(broker, member, step(next="1"), step(first=1, after="0"))
    end(broker, "ack", member)
    (inner,) = claim_members(broker)
    add(broker, inner, step())
    end(broker, "ack", inner)
    (innermost,) = claim_members(broker)
    assert states_of(broker) == ["succeeded", "waiting", "succeeded", "waiting", "started"]

    end(broker, "ack", innermost)

    assert states_of(broker) == ["succeeded", "waiting", "succeeded", "started", "succeeded"]
    end(broker, "ack", *claim_members(broker))
    assert states_of(broker)[1] == "started"


def test_steps_that_only_the_end_of_others_is_enough_for(redis, broker):
    """1 waits for the success of all, 2 for the end of all; the new ones fail."""
    (member,) = claimed_flow(broker, {"next": "1 2e"}, {"after": "0"}, {"after": "0e"})
    add(broker, member, step(next="1e"), step(first=1, after="0e"))
    end(broker, "ack", member)
    (first,) = claim_members(broker)
    end(broker, "expire", first)
    (second,) = claim_members(broker)
    assert states_of(broker) == ["succeeded", "skipped", "waiting", "failed", "started"]

    end(broker, "ack", second)

    assert states_of(broker) == ["succeeded", "skipped", "started", "failed", "succeeded"]


def test_a_second_run_of_the_job_adds_nothing(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)
    add(broker, member, step())
    broker.reclaim_child(QUEUE, WORKER, [member.id])
    again = next(job for job in claim_members(broker, worker="w2") if job.id == member.id)
    before = snapshot(redis)

    assert add(broker, again, step(3), worker="w2") == ("added", "")

    assert changes(before, snapshot(redis)) == {}


@pytest.mark.parametrize("claimed_ms", [None, 1])
def test_only_who_holds_the_job_adds(redis, broker, claimed_ms):
    (member,) = claimed_flow(broker, *CHAIN)
    if claimed_ms is None:
        broker.reclaim_child(QUEUE, WORKER, [member.id])
    before = snapshot(redis)

    assert add(broker, member, step(), claimed_ms=claimed_ms) == ("stale", "")

    assert changes(before, snapshot(redis)) == {}


def test_a_workflow_that_is_over_takes_none(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)
    workflow_store(broker).cancel(FLOW)
    before = snapshot(redis)

    assert add(broker, member, step()) == ("over", "")

    assert changes(before, snapshot(redis)) == {}


def test_of_an_unknown_workflow_nothing_is_made(redis, broker):
    (member,) = claimed_flow(broker, {})
    redis.delete(broker.keys.of(QUEUE).workflow + FLOW.encode())

    assert add(broker, member, step()) == ("over", "")


def test_they_may_be_in_other_queues_and_empty(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)

    add(broker, member, step(0, next="1"), step(queue="low", after="0"))

    assert states_of(broker) == ["started", "waiting", "succeeded", "started"]
    assert len(claim_members(broker, queue="low")) == 1


def test_results_count_from_the_first_one_that_was_added(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)
    add(broker, member, step(2, keep="1"))
    end(broker, "ack", *claim_members(broker), outcome='{"result":7}')

    assert workflow_store(broker).outcomes(f"{FLOW}+0", [0, 1, 2]) == [b'{"result":7}', b'{"result":7}', None]


@pytest.mark.parametrize("others", [False, True])
def test_many_calls_arrive_in_parts(redis, broker, monkeypatch, others):
    """Before the last one nothing of them is there. Another run of the job begins anew with others, in their place
    unless another job has added some meanwhile."""
    member, other = claimed_flow(broker, {"size": 2, "next": "1"}, {"after": "0"})
    monkeypatch.setattr("django_rtq.workflows.store.MOST_BYTES", 1)
    execute, calls = broker.redis.execute_one, []

    def fail_second(command, **options):
        calls.append(command)
        if len(calls) == 2:
            raise KeyError
        return execute(command, **options)

    two = (step(), step(first=1))
    holder = holder_of(broker, member)
    with monkeypatch.context() as patch, suppress(KeyError):
        patch.setattr(broker.redis, "execute_one", fail_second)
        workflow_store(broker).add(holder, "s", [*two[0], *two[1]], [("0:0", CALL), ("1:0", CALL)])
    assert states_of(broker) == ["started", "waiting", "adding", "adding"]
    assert claim_members(broker) == []

    if others:
        assert add(broker, other, step()) == ("ok", "")
        end(broker, "ack", *claim_members(broker))
    assert add(broker, member, step(4), shape="other") == ("ok", "")

    between = ["adding", "adding", "succeeded"] if others else []
    assert states_of(broker) == ["started", "waiting", *between, "started"]
    assert snapshot(redis)[f"waiting_members:{FLOW}"].keys() == {"1:0"}
    end(broker, "ack", other, member, *claim_members(broker))
    end(broker, "ack", *claim_members(broker))
    assert fields_of(broker)["state"] == "succeeded"


@pytest.mark.parametrize(("change", "what"), [({"steps": 1000}, "steps"), ({"size:1": 16_000_000}, "jobs")])
def test_there_is_a_limit(redis, broker, change, what):
    (member,) = claimed_flow(broker, *CHAIN)
    hash = broker.keys.of(QUEUE).workflow + FLOW.encode()
    last = {f"{name}:999": redis.hget(hash, f"{name}:1") for name in ("first", "size")}
    redis.hset(hash, mapping={**last, **change})
    before = snapshot(redis)

    assert add(broker, member, step(2)) == ("full", what)

    assert changes(before, snapshot(redis)) == {}


@pytest.mark.parametrize("change", [{"steps": 999}, {"size:1": 15_999_998}])
def test_a_limit_may_be_reached(redis, broker, change):
    (member,) = claimed_flow(broker, *CHAIN)
    hash = broker.keys.of(QUEUE).workflow + FLOW.encode()
    last = {f"{name}:998": redis.hget(hash, f"{name}:1") for name in ("first", "size")}
    redis.hset(hash, mapping={**last, **change})

    assert add(broker, member, step()) == ("ok", "")


@pytest.mark.parametrize(("followers", "added", "answer"), [(150, 90, ("full", "edges")), (200, 50, ("ok", ""))])
def test_edges_have_a_limit(redis, broker, followers, added, answer):
    next = " ".join(str(number) for number in range(1, followers + 1))
    (member,) = claimed_flow(broker, {"next": next}, *[{"after": "0"}] * followers)

    assert add(broker, member, *[step(first=number) for number in range(added)]) == answer


def test_what_is_added_is_something_that_happened(redis, broker, keys):
    (member,) = claimed_flow(broker, *CHAIN)
    redis.zadd(keys.workflows, {FLOW: 1})

    add(broker, member, step())

    assert redis.zscore(keys.workflows, FLOW) > 1


def test_after_any_prefix_of_its_log_it_is_added_again(redis, broker):
    (member,) = claimed_flow(broker, *CHAIN)
    copy = copy_of(redis)
    writes = writes_of(redis, lambda: add(broker, member, step(next="1"), step(first=1, after="0")))
    whole = edges_of(redis)
    assert len(writes) > 15

    for kept in range(len(writes)):
        restore(redis, copy, writes[:kept])

        assert add(broker, member, step(next="1"), step(first=1, after="0"))[0] in ("ok", "added")

        assert (kept, edges_of(redis)) == (kept, whole)


def edges_of(redis):
    """What waits for what."""
    taken = snapshot(redis)
    fields = {name: text.split() for name, text in taken[f"workflow:{FLOW}"].items() if name[:5] in ("after", "next:")}
    return fields | {name: waits for name, waits in taken.items() if name.startswith("step_waits:")}
