"""What is the id of a member of a workflow is said once in Python and once in Lua: both say the same."""

import random
import re

from django_rtq.core.jobs.job import is_member, new_job_id, with_shard
from django_rtq.workflows.store import member_id, workflow_of
from tests.support.jobs import QUEUE, new_job
from tests.support.mutant import FILES
from tests.support.snapshots import snapshot

DIGITS = "0123456789abcdef"


def ids(dice):
    """Ids of all kinds, and texts that differ from one in a digit or in their length."""
    for _ in range(500):
        job_id = new_job_id()
        made = dice.choice(
            [
                job_id,
                with_shard(job_id, dice.randrange(1, 4096)),
                new_job_id(dice.randrange(1, 4096)),
                member_id(f"{dice.getrandbits(48):012x}", dice.getrandbits(41), dice.getrandbits(24), keeps=True),
                member_id(f"{dice.getrandbits(48):012x}", dice.getrandbits(41), dice.getrandbits(24), keeps=False),
            ]
        )
        place = dice.choice([12, 16, dice.randrange(32)])
        yield from (made, made[:place] + dice.choice(DIGITS) + made[place + 1 :], made[:place], made + "0")


def test_lua_and_python_say_the_same(redis):
    made = [*ids(random.Random(0))]
    function = re.search(r"local function is_member.*?\nend\n", FILES["lib/members"], re.DOTALL)
    source = "local said = {} for i, id in ipairs(ARGV) do said[i] = is_member(id) and 1 or 0 end return said"

    assert redis.eval(function[0] + source, 0, *made) == [int(is_member(job_id)) for job_id in made]
    assert {bool(workflow_of(job_id)) == is_member(job_id) for job_id in made} == {True}
    assert {is_member(job_id.encode()) == is_member(job_id) for job_id in made} == {True}
    assert 200 < sum(map(is_member, made)) < len(made) - 200


def test_of_a_job_that_names_a_shard_nothing_is_noted(redis, broker, access):
    job = new_job()._replace(id=new_job_id(1))
    broker.enqueue(QUEUE, [job])
    access.cancel(job.id)

    assert is_member(job.id) is False
    assert "ended_members" not in snapshot(redis)
