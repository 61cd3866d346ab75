"""Jobs of workflows are found by their workflow, and know it."""

from django_rtq import workflow
from django_rtq.console.nouns import find_jobs
from django_rtq.console.reading.members import WorkflowStep, read_query, step_of
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.reading.sweep import Sweep
from django_rtq.core.handle import JobHandle
from django_rtq.testing import drain
from django_rtq.workflows import workflow_store
from django_rtq.workflows.handle import Workflow
from tests.app import workflow_steps as tasks
from tests.support.commands import run
from tests.support.console_steps import requeue_elsewhere
from tests.support.jobs import QUEUE, queued_job
from tests.support.workflows import FLOW, advance, begun_flow, claim_members, claimed_flow, end
from tests.workflows.lua.test_cancel_workflow import parts_flow

OTHER = "0123456789ac"


def test_the_dead_jobs_of_several_parts_are_known_by_their_ids(broker):
    flow = parts_flow(5)
    workflow_store(broker).start(workflow_store(broker).store(flow)[2])
    members = claim_members(broker)
    dead = [members[number] for number in (0, 2, 3)]
    end(broker, "bury", *dead)

    assert sorted(Workflow(FLOW).dead()) == sorted((member.id, QUEUE) for member in dead)


def test_dead_jobs_are_requeued_in_the_queue_where_they_are(broker, readers):
    with workflow("twice") as flow:
        flow.map(tasks.refuse, "abc")
    drain(raise_errors=False)
    dead = [JobHandle(job_id, QUEUE) for job_id, _ in flow.handle.dead()][:2]
    requeue_elsewhere(broker, dead, "bulk")
    drain(raise_errors=False)
    readers.actions.done("discard", "bulk", [dead[0].id])

    assert flow.handle.requeue_dead() == 2
    found = readers.find(dead[1].id)
    assert (found.state, found.queue) == ("queued", "bulk")


def two_flows(broker):
    """Two workflows, of the first of which one of three jobs runs, and two are dead; and a job of none."""
    members = claimed_flow(broker, {"size": 3, "next": "1"}, {"after": "0"})
    end(broker, "bury", *members[:2])
    begun_flow(broker, {"size": 2}, flow_id=OTHER, name="other flow")
    queued_job(broker)
    return [member.id for member in members]


def found(query):
    return [job.id for job, _ in find_jobs(readers_of(), read_query(readers_of(), query))]


def test_a_query_finds_the_jobs_of_a_workflow_by_its_name_or_id(broker):
    members = two_flows(broker)

    assert sorted(found("workflow:flow")) == sorted(members)
    assert sorted(found(f"workflow:{FLOW}")) == sorted(members)
    assert sorted(found(f"workflow:{FLOW} state:dead")) == sorted(members[:2])
    assert len(found('workflow:"other flow"')) == 2
    assert found(f"workflow:{OTHER} id:{members[0]}") == found("workflow:ffffffffffff") == []


def test_a_stored_selection_is_the_same_again(broker):
    two_flows(broker)
    query = read_query(readers_of(), "queue:default workflow:flow")

    assert query.workflow_ids == (FLOW,)
    assert Sweep.read(Sweep(verb="cancel", selection=query).stored()).selection == query


def test_a_job_knows_its_workflow_and_what_blocks_it(broker):
    members = two_flows(broker)

    member = step_of(members[2], "")

    assert (member.workflow.id, member.step.number) == (FLOW, 0)
    assert member.blocked_by == "2 of 3 jobs of step t are dead."
    assert step_of(queued_job(broker).id, "") is None
    assert step_of(members[0][:-6] + "00ffff", "") is None  # its number belongs to no step
    assert step_of(members[0].replace("789ab", "7fffb"), "") is None  # forgotten


def test_a_step_that_has_not_started_says_what_it_waits_for(broker):
    begun_flow(broker, {"size": 3, "next": "1"}, {"after": "0"})
    assert reasons() == "3 of 3 jobs of step t are not over"
    members = claim_members(broker)
    end(broker, "bury", *members[:2])
    assert reasons() == "2 of 3 jobs of step t are dead"
    end(broker, "ack", members[2])
    readers_of().actions.done("requeue", "default", [member.id for member in members[:2]])
    advance(broker, *members)
    assert reasons() == "2 of 3 jobs of step t are not over"


def test_steps_that_a_job_had_begun_to_add_are_passed_by(redis, broker):
    """Their numbers are missing: those behind them keep theirs."""
    begun_flow(broker, {"next": "3"}, {}, {"size": 0}, {"after": "0"})
    redis.hset(broker.keys.of(QUEUE).workflow + FLOW.encode(), mapping={"state:1": "adding", "after:3": "2 0"})
    progress = Workflow(FLOW).progress()

    assert [step.number for step in progress.steps] == [0, 2, 3]
    assert WorkflowStep(progress, progress.steps[2]).reasons == "1 of 1 job of step t is not over"


def reasons():
    progress = Workflow(FLOW).progress()
    assert WorkflowStep(progress, progress.steps[0]).reasons == ""
    return WorkflowStep(progress, progress.steps[1]).reasons


def test_the_command_says_it(broker):
    shown = run("rtq_jobs", "show", two_flows(broker)[0]).out

    assert f'Workflow:       {{"id": "{FLOW}", "name": "flow", "step": 0}}' in shown
    assert "Blocked:        2 of 3 jobs of step t are dead." in shown
