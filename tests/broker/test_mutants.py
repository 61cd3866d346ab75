"""Mutation tests: a script with one mistake differs from the model in some scenario."""

from contextlib import contextmanager

import pytest
from hypothesis import Phase

from django_rtq.broker.broker import Broker
from tests.broker.model.drain import drain
from tests.broker.model.found_by import FOUND_BY
from tests.broker.model.mutant import mutated
from tests.broker.model.mutants import MUTANTS
from tests.broker.model.mutants_limits import LIMIT_MUTANTS
from tests.broker.model.mutants_logs import LOG_MUTANTS
from tests.broker.model.mutants_moves import MOVE_MUTANTS
from tests.broker.model.mutants_outcomes import OUTCOME_MUTANTS
from tests.broker.model.mutants_search import SEARCH_MUTANTS
from tests.broker.model.mutants_tasks import TASK_MUTANTS
from tests.broker.model.mutants_times import TIME_MUTANTS
from tests.broker.model.mutants_undo import UNDO_MUTANTS
from tests.broker.model.mutants_waiting import WAITING_MUTANTS
from tests.broker.model.mutants_weights import WEIGHT_MUTANTS
from tests.broker.model.parallel_run import ParallelRun, parallel_config
from tests.broker.model.random_verbs import run_randomly
from tests.broker.model.scenarios import SCENARIOS as OTHER_SCENARIOS
from tests.broker.model.scenarios_delayed import DELAYED_SCENARIOS
from tests.broker.model.scenarios_limits import LIMIT_SCENARIOS
from tests.broker.model.scenarios_logs import LOG_SCENARIOS
from tests.broker.model.scenarios_operators import OPERATOR_SCENARIOS
from tests.broker.model.scenarios_outcomes import OUTCOME_SCENARIOS
from tests.broker.model.scenarios_rates import RATE_SCENARIOS
from tests.broker.model.scenarios_search import SEARCH_SCENARIOS
from tests.broker.model.scenarios_tasks import TASK_SCENARIOS
from tests.broker.model.scenarios_times import TIME_SCENARIOS
from tests.broker.model.scenarios_turns import TURN_SCENARIOS
from tests.broker.model.scenarios_undo import UNDO_SCENARIOS
from tests.broker.model.scenarios_unique import UNIQUE_SCENARIOS
from tests.broker.model.scenarios_waiting import WAITING_SCENARIOS
from tests.broker.model.scenarios_weights import WEIGHT_SCENARIOS

SCENARIOS = (
    *OTHER_SCENARIOS,
    *DELAYED_SCENARIOS,
    *LIMIT_SCENARIOS,
    *LOG_SCENARIOS,
    *OUTCOME_SCENARIOS,
    *OPERATOR_SCENARIOS,
    *RATE_SCENARIOS,
    *SEARCH_SCENARIOS,
    *TASK_SCENARIOS,
    *TIME_SCENARIOS,
    *TURN_SCENARIOS,
    *UNDO_SCENARIOS,
    *UNIQUE_SCENARIOS,
    *WAITING_SCENARIOS,
    *WEIGHT_SCENARIOS,
)

ALL_MUTANTS = (
    *MUTANTS,
    *OUTCOME_MUTANTS,
    *LOG_MUTANTS,
    *LIMIT_MUTANTS,
    *WAITING_MUTANTS,
    *WEIGHT_MUTANTS,
    *TIME_MUTANTS,
    *TASK_MUTANTS,
    *MOVE_MUTANTS,
    *UNDO_MUTANTS,
    *SEARCH_MUTANTS,
)

# What the state machine meets soon; of all mutants, it finds most within a hundred runs, and some later by chance.
SOON = (
    "finish_without_ownership_check",
    "enqueue_many_without_exists_check",
    "no_ring_entry_on_give_back",
    "running_entry_kept_on_retry",
    "claim_trims_one_too_many",
    "claim_leaves_the_one",
    "digest_not_held",
    "crash_not_counted",
    "promote_forgets_retrying",
)


@pytest.fixture
def broker(redis, redis_server):
    broker = Broker(parallel_config(redis_server.url))
    yield broker
    broker.close()


def play(scenario, redis, broker):
    """Play a scenario, from two workers to the end of all jobs."""
    parallel = ParallelRun(redis, broker)
    parallel.sign_on("w0")
    parallel.sign_on("w1")
    scenario(parallel)
    drain(parallel)


def play_all(redis, broker, mutant):
    """Play all scenarios until one fails, and first the one that is known to find this mutant."""
    for scenario in sorted(SCENARIOS, key=lambda scenario: not finds(scenario, mutant)):
        play(scenario, redis, broker)


@contextmanager
def loaded(redis, mutant):
    """The server knows the wrong scripts: one that is sent twice comes after the others of its pipeline."""
    with mutated(mutant):
        redis.load_scripts()
        yield


def finds(scenario, mutant):
    return mutant.name in FOUND_BY.get(scenario.__name__, "").split()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_scripts_do_what_the_model_says(redis, broker, scenario):
    play(scenario, redis, broker)


def test_each_mutant_has_a_scenario_that_is_played_first():
    """Without one, or with one that is renamed, a mutant takes twenty times as long."""
    assert FOUND_BY.keys() <= {scenario.__name__ for scenario in SCENARIOS}
    assert {name for names in FOUND_BY.values() for name in names.split()} == {mutant.name for mutant in ALL_MUTANTS}


# An error in the script itself would be found out by anybody: only AssertionError counts.
@pytest.mark.parametrize("mutant", ALL_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_script_is_found_out(redis, broker, mutant):
    with loaded(redis, mutant), pytest.raises(AssertionError):
        play_all(redis, broker, mutant)


@pytest.mark.parametrize(
    "mutant", [mutant for mutant in MUTANTS if mutant.name in SOON], ids=lambda mutant: mutant.name
)
def test_random_verbs_find_it_out_as_well(redis, broker, mutant):
    with loaded(redis, mutant), pytest.raises(AssertionError):
        run_randomly(redis, broker, examples=400, seeded_by=0, phases=[Phase.generate])
