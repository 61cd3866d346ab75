"""All scenarios."""

from __future__ import annotations

from tests.protocol.model.scenarios import SCENARIOS as OTHER_SCENARIOS
from tests.protocol.model.scenarios_delayed import DELAYED_SCENARIOS
from tests.protocol.model.scenarios_limits import LIMIT_SCENARIOS
from tests.protocol.model.scenarios_logs import LOG_SCENARIOS
from tests.protocol.model.scenarios_operators import OPERATOR_SCENARIOS
from tests.protocol.model.scenarios_outcomes import OUTCOME_SCENARIOS
from tests.protocol.model.scenarios_rates import RATE_SCENARIOS
from tests.protocol.model.scenarios_search import SEARCH_SCENARIOS
from tests.protocol.model.scenarios_tasks import TASK_SCENARIOS
from tests.protocol.model.scenarios_times import TIME_SCENARIOS
from tests.protocol.model.scenarios_turns import TURN_SCENARIOS
from tests.protocol.model.scenarios_unique import UNIQUE_SCENARIOS
from tests.protocol.model.scenarios_waiting import WAITING_SCENARIOS
from tests.protocol.model.scenarios_weights import WEIGHT_SCENARIOS

SCENARIOS = (
    *OTHER_SCENARIOS,
    *DELAYED_SCENARIOS,
    *LIMIT_SCENARIOS,
    *LOG_SCENARIOS,
    *OPERATOR_SCENARIOS,
    *OUTCOME_SCENARIOS,
    *RATE_SCENARIOS,
    *SEARCH_SCENARIOS,
    *TASK_SCENARIOS,
    *TIME_SCENARIOS,
    *TURN_SCENARIOS,
    *UNIQUE_SCENARIOS,
    *WAITING_SCENARIOS,
    *WEIGHT_SCENARIOS,
)
