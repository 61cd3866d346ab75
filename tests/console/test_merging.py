"""Values of several places add up as their fields say."""

from dataclasses import dataclass, field, fields, replace

import pytest

from django_rtq.console.merging import COUNTS, FIRST, JOINED, LEAST, MOST, ONE, SUM, TOTAL, merge, merge_by, rows_by
from django_rtq.console.reading.clients import ClientInQueue, QueueState
from django_rtq.console.reading.details import QueueDetails, ZeroLimit
from django_rtq.console.reading.metrics.reader import TaskMetrics
from django_rtq.console.reading.overview import BlockedWorkflow, QueueRow, WorkflowStates
from django_rtq.console.reading.sweep import Count
from django_rtq.console.reading.task_details import TaskInQueue
from django_rtq.core.jobs.job import clock_moment
from tests.console.incidents.overviews import overview, row


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    size: int = field(default=0, metadata=SUM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str = ""
    known: int | None = field(default=None, metadata=TOTAL)
    most: float | None = field(default=None, metadata=MOST)
    least: float | None = field(default=None, metadata=LEAST)
    who: str = field(default="", metadata=FIRST)
    counts: dict = field(default_factory=dict, metadata=COUNTS)
    names: list = field(default_factory=list, metadata=JOINED)
    part: Part = field(default=Part(name="x", size=1), metadata=ONE)
    parts: list = field(default_factory=list, metadata=rows_by("name"))


def test_each_field_adds_up_in_its_way():
    one = Whole(name="a", least=2.0, counts={"x": 1}, names=[1], parts=[Part(name="q", size=1), Part(name="p", size=2)])
    other = Whole(
        name="b", known=3, most=1.0, who="eve", counts={"x": 2, "y": 1}, names=[2], parts=[Part(name="q", size=4)]
    )

    assert merge([one, other]) == Whole(
        name="a", known=3, most=1.0, least=2.0, who="eve", counts={"x": 3, "y": 1}, names=[1, 2],
        part=Part(name="x", size=2), parts=[Part(name="p", size=2), Part(name="q", size=5)],
    )  # fmt: skip
    assert merge([one]) is one
    assert merge_by("name", []) == []


@pytest.mark.parametrize("kind", [QueueDetails, QueueRow, TaskMetrics, TaskInQueue, ClientInQueue, QueueState, Count])
def test_no_number_is_that_of_one_place_alone(kind):
    numbers = {each.name for each in fields(kind) if str(each.type).split(" ")[0] in ("int", "float", "bool")}

    assert {each.name for each in fields(kind) if "merge" not in each.metadata} & numbers == set()


def test_an_overview_of_several_places_has_the_workflows_of_all():
    flows = [BlockedWorkflow(id=name, name=name, since=clock_moment(at)) for name, at in (("a", 2000), ("b", 1000))]
    states = [WorkflowStates(counts={"running": 1}, blocked=[flow], stuck=[flow]) for flow in flows]
    zero = ZeroLimit("clients", 1, True)
    rows = [row(queued=2, lost=1, zero_limits=[zero]), row(queued=3, is_at_limit=True, zero_limits=[zero])]

    whole = merge(replace(overview(one), workflows=each) for one, each in zip(rows, states, strict=True))

    assert whole.workflows == WorkflowStates(counts={"running": 2}, blocked=flows[::-1], stuck=flows[::-1])
    (only,) = whole.queues
    assert (only.details.queued, only.details.lost, only.details.is_at_limit, only.slots) == (5, 1, True, 2)
    assert only.details.zero_limits == [zero, zero]
