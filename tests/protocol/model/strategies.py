"""Hypothesis strategies: what random verbs get."""

from hypothesis import strategies as st

from tests.protocol.model.parallel_run import QUEUES
from tests.protocol.model.state import LEASE_MS, RESULT_MS

CLIENTS = ("", "acme", "a:b c", "ü")
BODY = '{"task":"täsk","args":[[],{}]}'
TASKS = ("täsk", "charge")
BODIES = (BODY, '{"task":"charge"}')
CHANGED = '{"task":"täsk","args":["ü"]}'
PROGRESS = '{"done":1,"total":null,"text":"ü"}'
ERROR = '{"error":"it broke","traceback":"line\\n"}'
DUES = ("", "", "", "", "+0", "+1", "+3000", "+20000", "past", "now", "soon")
EXPIRIES = ("", "", "+5000", "now", "soon")
# How far the clock is off that made the id; None: an id that tells no time.
SKEWS = (0, 0, 0, -1000, -1001, 1000, 1001, 5000, None)
TORN = ("turn", "band", "index", "trim", "worker")  # what a torn log has lost, or bent
# What a job waits for: sleeps and events so far, and which event.
WAITS = ("1 0", "0 0 1 go", "0 0 1 go", "0 1 2 go", "1 1 1 two words")
EVENTS = ("go", "go", "two words")
VALUES = ("7", '{"by":"ü"}', "[1,2,3,4,5,6,7,8,9,10]")
KEEPS = (1000, 120_000, RESULT_MS)
PAUSES = (1, 999, 3000, LEASE_MS // 2, LEASE_MS // 2 + 1, LEASE_MS - 1, LEASE_MS, LEASE_MS, LEASE_MS + 1, 60_000)

queues = st.sampled_from((*QUEUES[:1] * 3, *QUEUES[1:]))
orders = st.sampled_from((QUEUES[:1], QUEUES, QUEUES[::-1], QUEUES[1:]))
indexes = st.integers(0, 11)  # of a thing in a list, modulo its length
several = st.lists(indexes, min_size=1, max_size=4, unique=True)
limits = st.sampled_from((1, 2, 100))
most_purged = st.sampled_from((1, 1, 1, 2, 3, 100))
clients_aside = st.lists(st.tuples(st.sampled_from(QUEUES), st.sampled_from(CLIENTS)), max_size=2)
purged_clients = st.sampled_from((None, None, *CLIENTS))
twice = st.sampled_from((1, 1, 2))
rarely = st.sampled_from((False, False, False, True))
new_jobs = st.lists(
    st.tuples(*map(st.sampled_from, (CLIENTS, (0, 0, 5, -5), (3, 3, 1, 0), DUES, EXPIRIES, ("", "", "", "1"), SKEWS))),
    min_size=1,
    max_size=4,
)
# Digest, until when it is held, for how long, and what becomes of the second.
holdings = st.tuples(
    *map(
        st.sampled_from,
        (
            ("d1", "d1", "d1", "d2", ""),
            ("done", "done", "start"),
            (50_000, 3_600_000),
            ("return", "rerun", "rerun", "replace", "replace"),
        ),
    )
)
settlements = st.lists(
    st.tuples(
        st.sampled_from(("ack", "expire", "finish_cancel", "retry", "bury", "suspend", "suspend", "release")),
        st.booleans(),
        indexes,
    ),
    min_size=1,
    max_size=3,
)
# Limits of a queue and its clients; "" deletes all of one.
limit_entries = st.tuples(
    st.sampled_from(
        (
            *("run:queue", "run:clients", "run:client:acme", "run:client:", "run:paused:acme", "run:paused:a:b c"),
            *("settings:queue", "settings:clients", "settings:client:acme"),
        )
    ),
    st.sampled_from(
        (
            *("max_running=1", "max_running=2", "max_running=0", "max_running=4", "max_running=none", "max_running="),
            *("rate=1/3000", "rate=2/1000 burst=2", "rate=1000/1000", "rate=", "max_running=2 rate=3/2000 burst=1"),
            *("max_waiting=2", "max_waiting=4 max_running=3", "max_waiting=none", "max_waiting="),
            *("weight=3", "weight=0.1", "weight=40", "weight=", ""),
        )
    ),
)
