"""Scenarios: searches for jobs in all states, some at a time, as the script replies them."""

from collections.abc import Sequence
from typing import Any

from django_rtq.console.reading.selection import Selection
from django_rtq.core.jobs.job import moment
from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import KEEP_MS, run, send

SHIP, MAIL = '{"task":"shop.ship","args":["parcel"]}', '{"task":"shop.mail","args":["letter"]}'
ALL = Selection()
EVERYBODY, PARCELS, NOBODY = "abcde", "ace", ""  # names of the jobs that match
FILTERS = (
    (ALL, EVERYBODY),
    (Selection(task="ship"), PARCELS),
    (Selection(id="0"), EVERYBODY),
    (Selection(id="x"), NOBODY),
)


def search(
    parallel: ParallelRun, state: str, wanted: Selection, *, most: int = 2, enough: int = 100, at: Sequence[str] = ()
) -> tuple[list[str], int]:
    """The ids that the script finds from there on, in some calls, and at how many jobs it looked."""
    found, looked, is_more, alone = [], 0, True, wanted.client is not None
    place: Sequence[str] = at or (("", "0", wanted.client or "") if alone and state == "queued" else ())
    while is_more:
        texts = wanted.outcome_texts if state == "finished" else ""
        values = (*wanted.script_arguments(), state, wanted.id, "", texts, most, enough)
        status, read, last, counted, *matches = parallel._script("mail", "search_jobs", *values, "ids", *place)
        assert counted == 0
        for number, where, *_ in matches:
            assert 0 < number <= read
            found.append(where[3 if len(where) > 2 else 1].decode())
        looked, is_more = looked + read, status == b"more"
        assert looked < 1000, "a search without end"
        place = [part.decode() for part in last]
        if alone and state == "queued":
            place = [*place, "alone"]
    return found, looked


def compare(parallel: ParallelRun, state: str, ids: Sequence[str], *, is_ordered: bool = True) -> None:
    """Search these jobs, which are all of that state, in steps of several sizes."""
    for most in (1, 2, 3, 100):
        for wanted, names in FILTERS:
            found, looked = search(parallel, state, wanted, most=most)
            expected = [job_id for job_id in ids if job_id[-1] in names]
            assert (found if is_ordered else sorted(found)) == (expected if is_ordered else sorted(expected))
            assert looked >= len(ids)
    parcels, _ = search(parallel, state, Selection(text="parcel"))
    assert sorted(parcels) == sorted(job_id for job_id in ids if job_id[-1] in PARCELS)


def _send(parallel: ParallelRun, group: str, **options: Any) -> list[str]:
    """Five jobs: a, c and e ship a parcel, b and d mail a letter."""
    return [
        send(parallel, f"{group}-{name}", body=SHIP if name in PARCELS else MAIL, **options)[0] for name in EVERYBODY
    ]


def people_search_waiting_jobs(parallel: ParallelRun) -> None:
    for state in ("queued", "scheduled", "retrying", "running", "dead"):
        compare(parallel, state, [])
    fails = _send(parallel, "fails")
    parallel.claim("w0", ("mail",), 5)
    run(parallel, "retry", fails, 3000, 1, '{"error":"late"}')
    later = _send(parallel, "later", due="+3000")
    queued = [*_send(parallel, "q", client="acme"), *_send(parallel, "r", client="other", priority=5)]
    queued += _send(parallel, "s", client="behind")
    compare(parallel, "retrying", fails)
    compare(parallel, "queued", queued, is_ordered=False)
    compare(parallel, "lanes", queued, is_ordered=False)
    compare(parallel, "delayed", [*fails, *later])
    found, looked = search(parallel, "scheduled", ALL)
    assert (found, looked) == (later, 10)  # retrying jobs are passed over
    assert search(parallel, "queued", Selection(client="acme")) == (queued[:5], 5)
    assert search(parallel, "queued", Selection(client="nobody"))[0] == []
    mine = _send(parallel, "mine", client="acme", due="+4000")
    assert search(parallel, "scheduled", Selection(client="acme")) == (mine, 5)
    assert search(parallel, "retrying", Selection(client="")) == (fails, 10)
    assert search(parallel, "scheduled", Selection(client="nobody")) == ([], 0)
    due = moment(parallel.clock.now + 3000)
    for times, expected in ((Selection(since=due), fails), (Selection(before=due), fails)):
        assert search(parallel, "retrying", times)[0] == expected
    early = moment(parallel.clock.now + 2999)
    assert search(parallel, "retrying", Selection(before=early))[0] == []
    assert search(parallel, "retrying", Selection(since=moment(parallel.clock.now + 3001)))[0] == []


def people_search_running_and_dead_jobs(parallel: ParallelRun) -> None:
    dies = _send(parallel, "dies")
    parallel.claim("w0", ("mail",), 5)
    compare(parallel, "running", dies, is_ordered=False)
    parallel.advance(5000)
    run(parallel, "bury", dies, 1, '{"error":"it broke"}')
    newest_first = sorted(dies, reverse=True)
    compare(parallel, "dead", newest_first)
    compare(parallel, "oldest", newest_first[::-1])
    died = parallel.clock.now
    assert search(parallel, "dead", Selection(since=moment(died), before=moment(died)))[0] == newest_first
    assert search(parallel, "dead", Selection(since=moment(died + 1)))[0] == []
    first, _ = search(parallel, "dead", ALL)
    gone = first[1]  # a search has come to it, and it is discarded
    parallel.discard("mail", [gone])
    assert search(parallel, "dead", ALL, at=(str(died), gone))[0] == first[2:]


def people_search_finished_jobs(parallel: ParallelRun) -> None:
    ids = _send(parallel, "done")[:4]
    parallel.claim("w0", ("mail",), 5)
    outcomes = [f'{{"state":"succeeded","task":"shop.ship","result":["{word}"]}}' for word in ("one two", "one")]
    for place, job_id in enumerate(ids):
        run(parallel, "ack", [job_id], KEEP_MS, outcomes[place % 2])
        parallel.advance(1)
    for most in (1, 2, 100):
        assert search(parallel, "finished", ALL, most=most)[0] == ids[::-1]
        for wanted, expected in (
            (Selection(text="one two"), [ids[2], ids[0]]),
            (Selection(task="ship", text="two"), [ids[2], ids[0]]),
            (Selection(task="mail", text="two"), []),
            (Selection(task="ship", text="done-b"), [ids[1]]),
        ):
            assert search(parallel, "finished", wanted, most=most)[0] == expected


def long_searches_stop_in_between(parallel: ParallelRun) -> None:
    ids = send(parallel, *(f"{number:03d}" for number in range(120)), due="+3000", body=SHIP)
    values = (*ALL.script_arguments(), "scheduled", "", "", "", 500)
    status, looked, *_ = parallel._script("mail", "search_jobs", *values, 51, "ids")
    assert (status, looked) == (b"more", 51)
    status, looked, _, counted, *matches = parallel._script("mail", "search_jobs", *values, 51, "count")
    assert (status, looked, counted, matches) == (b"all", 120, 120, [])
    assert search(parallel, "scheduled", ALL, most=500, enough=1) == (ids, 120)
    assert search(parallel, "scheduled", Selection(text="parcel"), most=500, enough=1) == (ids, 120)
