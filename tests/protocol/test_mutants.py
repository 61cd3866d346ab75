"""Mutation tests: a script with one mistake differs from the model in some scenario, or fails a test of its own.

Rules make the mistakes: see mutant_rules.py. By default a part of them is tried, by night all.
"""

import hashlib
import json
import threading
from pathlib import Path

import pytest
from hypothesis import Phase

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from tests.protocol.model import players as players_module
from tests.protocol.model.all_scenarios import SCENARIOS
from tests.protocol.model.mutant_rules import mutants_of
from tests.protocol.model.parallel_run import parallel_config
from tests.protocol.model.players import Players
from tests.protocol.model.quoted_mutants import QUOTED_MUTANTS
from tests.protocol.model.random_verbs import run_randomly
from tests.protocol.model.survivors import SURVIVORS
from tests.support.mutant import FILES, changed, files_of, mutated
from tests.support.nightly import IS_NIGHTLY
from tests.support.waiting import wait_until

# Function of a file, or mutant -> what found mistakes in it, and is played first.
FOUND_BY = json.loads((Path(__file__).parent / "model" / "found_by.json").read_text())
ONE_OF = 1 if IS_NIGHTLY else 30  # of so many mutants, one is tried
# What the state machine meets soon; of all mutants, it finds most within a hundred runs, and some later by chance.
SOON = (
    "finish_without_ownership_check",
    "lib/known_ids find_known: [live[i] or -> nothing]finished[i] == 1",
    "no_ring_entry_on_give_back",
    "settle : [leave(q, q.running, { id }) -> nothing]",
    'lib/turns end_turns: [redis.call("LPOP", turns.lanes[c]) -> nothing]',
    'lib/unique acquire_unique: [redis.call("SET", q.unique .. digest, id, "PX", string.format("%.0f", ms))'
    " -> nothing]",
    "crash_not_counted",
    'promote : [redis.call("ZREM", q.retrying, unpack(picked.ids)) -> nothing]',
)


@pytest.fixture
def players(redis, redis_server):
    """What plays scenarios and tests. Those that fail leave threads that wait for a job, and connections."""
    yield Players(redis, redis_server)
    wait_until(lambda: not [thread for thread in threading.enumerate() if type(thread).__name__ == "Waiting"])
    redis.client_kill_filter(skipme=True)


def is_found(players, redis, file, source, *, first):
    """Whether a scenario or a test fails with this source of a file, and only then. An error in the script counts."""
    scripts = [*(name for name in SCRIPTS if file in files_of(name)), Path(file).name]
    for name in dict.fromkeys([*first, *players.names(scripts)]):
        with changed({file: source}):
            redis.load_scripts()  # one that is sent twice comes after the others of its pipeline
            is_mistake = players.finds_mistake(name)
        if is_mistake and players.is_sound(name):
            return True
    return False


def place_of(mutant):
    """The function that it is in, as FOUND_BY names it."""
    return f"{mutant.file} {mutant.function}".strip()


def first_for(mutant):
    """What is known to find it, or others in its function. None: nobody has judged whether it is a mistake."""
    named, of_function = FOUND_BY.get(mutant.name), FOUND_BY.get(place_of(mutant))
    if named is None and (mutant.is_by_name or of_function is None):
        return None
    return [*(named or ()), *(of_function or ())]


def is_tried(mutant):
    number = int(hashlib.sha256(mutant.name.encode()).hexdigest()[:8], 16)
    return first_for(mutant) is not None and mutant.name not in SURVIVORS and number % ONE_OF == 0


ALL = [mutant for file, source in FILES.items() for mutant in mutants_of(file, source)]
TRIED = [mutant for mutant in ALL if is_tried(mutant)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_scripts_do_what_the_model_says(players, scenario):
    players.play(scenario.__name__)


@pytest.mark.long
@pytest.mark.parametrize("mutant", QUOTED_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_quoted_mistake_is_found(players, redis, mutant):
    assert is_found(players, redis, mutant.file, mutant.source, first=FOUND_BY.get(mutant.name, ()))


@pytest.mark.long
@pytest.mark.parametrize("file", list(dict.fromkeys(mutant.file for mutant in TRIED)))
def test_the_mistakes_that_rules_make_in_a_file_are_found(players, redis, file):
    unfound = [
        mutant.name
        for mutant in TRIED
        if mutant.file == file and not is_found(players, redis, file, mutant.source, first=first_for(mutant))
    ]

    assert unfound == [], "write a scenario or a test that finds them, or list them in survivors.py"


def test_survivors_and_judged_functions_are_there():
    names = {mutant.name for mutant in ALL}
    known = names | {place_of(mutant) for mutant in ALL} | {mutant.name for mutant in QUOTED_MUTANTS}

    assert SURVIVORS.keys() - names == set(), "no rule makes these any more: delete them"
    assert FOUND_BY.keys() - known == set(), "these are called otherwise by now: rename them, or judge their functions"
    tests = {f"{script}/{test.__name__}" for script, _, test in players_module.tests_of_scripts()}
    finders = {name for names in FOUND_BY.values() for name in names}
    assert finders - tests - {scenario.__name__ for scenario in SCENARIOS} == set(), "they cannot be played"


@pytest.mark.long
@pytest.mark.parametrize("name", SOON if IS_NIGHTLY else SOON[:3], ids=lambda name: name.partition(": ")[0])
def test_random_verbs_find_it_out_as_well(redis, redis_server, name):
    (mutant,) = [mutant for mutant in (*QUOTED_MUTANTS, *ALL) if mutant.name == name]
    broker = WorkerBroker(parallel_config(redis_server.url))
    with mutated(mutant):
        redis.load_scripts()
        with pytest.raises(AssertionError):
            run_randomly(redis, broker, examples=400, seeded_by=0, phases=[Phase.generate])
    broker.close()


@pytest.mark.long
def test_a_mistake_that_never_ends_is_found(players, redis, monkeypatch):
    monkeypatch.setattr(players_module, "MOST_SECONDS", 3.0)
    source = FILES["pause"].replace("local ", "while true do end\nlocal ", 1)

    assert is_found(players, redis, "pause", source, first=["pause/test_the_second_time_changes_nothing"])
