"""The tests of the scripts bite: no wrong script gets past the twins."""

import pytest
from hypothesis import Phase

from django_rtq.broker.broker import Broker
from tests.broker.model.drain import drain
from tests.broker.model.mutants import MUTANTS, mutated
from tests.broker.model.parallel_run import Twins, twins_config
from tests.broker.model.random_verbs import run_randomly
from tests.broker.model.scenarios import STORIES as OTHER_STORIES
from tests.broker.model.scenarios_delayed import DELAYED_STORIES
from tests.broker.model.scenarios_operators import PEOPLE_STORIES
from tests.broker.model.scenarios_outcomes import OUTCOME_STORIES
from tests.broker.model.scenarios_turns import TURN_STORIES
from tests.broker.model.scenarios_unique import UNIQUE_STORIES

STORIES = (*OTHER_STORIES, *DELAYED_STORIES, *OUTCOME_STORIES, *PEOPLE_STORIES, *TURN_STORIES, *UNIQUE_STORIES)

# What the state machine meets soon; of all mutants, it finds most within a hundred runs, and some later by chance.
SOON = (
    "finish_without_ownership_check",
    "enqueue_without_exists_check",
    "no_ring_entry_on_give_back",
    "running_entry_kept_on_retry",
    "claim_trims_one_too_many",
    "given_back_twice",
    "crash_not_counted",
    "promote_forgets_retrying",
)


@pytest.fixture
def broker(redis, redis_server):
    broker = Broker(twins_config(redis_server.url))
    yield broker
    broker.close()


def tell(story, redis, broker):
    """Play a story, from two workers to the end of all jobs."""
    twins = Twins(redis, broker)
    twins.sign_on("w0")
    twins.sign_on("w1")
    story(twins)
    drain(twins)


in_turn = list(STORIES)


def tell_all(redis, broker):
    """Play all stories, until one fails. It goes first the next time: mutants of one kind fail in the same stories."""
    for story in list(in_turn):
        try:
            tell(story, redis, broker)
        except AssertionError:
            in_turn.remove(story)
            in_turn.insert(0, story)
            raise


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_scripts_do_what_the_model_says(redis, broker, story):
    tell(story, redis, broker)


# An error in the script itself would be found out by anybody: only AssertionError counts.
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_script_is_found_out(redis, broker, mutant):
    with mutated(mutant), pytest.raises(AssertionError):
        tell_all(redis, broker)


@pytest.mark.parametrize(
    "mutant", [mutant for mutant in MUTANTS if mutant.name in SOON], ids=lambda mutant: mutant.name
)
def test_random_verbs_find_it_out_as_well(redis, broker, mutant):
    with mutated(mutant), pytest.raises(AssertionError):
        run_randomly(redis, broker, examples=400, phases=[Phase.generate])
