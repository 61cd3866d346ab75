"""What can be done with jobs: one row for each action, and how it is sent.

An action is told which jobs by their ids, some in each round trip, and says what became of each. Its script may be sent
twice. If the reply is lost, the second call finds nothing left to do, so the jobs are read, and the row says in which
states they are then. Somebody else who did the same at that moment cannot be told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.dispatch import Signal

from django_rtq.console.reading.selection import LISTS, WAITING
from django_rtq.core import signals
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.control import NOT_CANCELLED, cancel_call, wake_supervisor_of
from django_rtq.core.broker.one_job import check_id, names_to_ask
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.broker.task_backends import place_of, queues_in, shard_of
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs import record as stored
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails, read_found
from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import BrokerUnavailable, JobNotFound, WrongState
from django_rtq.scale.placement import is_elsewhere
from django_rtq.workflows import workflow_store

LATEST = 10**15  # a moment after any death, in ms
SLACK_MS = 1000  # clocks of two machines run apart

Verb = Literal["requeue", "discard", "cancel", "run_now", "purge", "erase", "count"]
Answers = dict[str, str]  # id of a job -> what became of it, in a word


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """In which way an action is done, as far as that is asked."""

    latest_ms: int = LATEST  # dead letters that died later are left alone
    target: str = ""  # the queue in which dead letters are requeued; "": their own
    running: str = "leave"  # jobs that have started: "ask" them to stop, "terminate" their processes, or "leave" them
    body: str = ""  # the new body of the record of one dead letter, see changed_body(); "": it stays


PLAINLY = How()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A row of the table."""

    states: Sequence[str]  # the lists of jobs with which it can be done
    script: str
    #: The commands of one round trip. Those of `requeue` and `discard` take many ids, the others one each.
    calls: Callable[[Broker, str, Sequence[str], How], list[Command]] = lambda broker, queue, job_ids, how: []
    at_once: int = 50  # jobs of one round trip; Redis serves nobody else meanwhile
    done: str = ""  # the answer for jobs with which it was done
    also_done: Sequence[str] = ()  # answers that mean the same to the person who asked
    done_before: str = ""  # the answer for jobs with which it was done before this call
    #: The states in which jobs are with which it was done; None: nothing is known of them. Asked after a lost reply.
    leads_to: Collection[JobState | None] = ()
    is_dated: bool = False  # a job that it was done with is ready since then
    tell: Callable[[str, list[str], How], object] = lambda queue, job_ids, how: None  # sends the signals
    reasons: Mapping[str, str] = field(default_factory=dict)  # answer -> why nothing was done, after the id of the job

    @property
    def usual_states(self) -> Sequence[str]:
        """The states that are meant if none is named: all but running."""
        return [state for state in self.states if state != "running"]

    def read(self, replies: Sequence[Any], job_ids: Sequence[str]) -> Answers:
        """What became of each of these jobs."""
        if not self.script:
            return dict.fromkeys(job_ids, self.done)
        if self.script not in ("requeue", "discard"):  # these take many jobs, and reply with the ids of those done
            return dict(zip(job_ids, map(_word, replies), strict=True))
        acted = {job_id.decode() for job_id in replies[0]}
        return {job_id: self.done if job_id in acted else "left" for job_id in job_ids}

    def is_done(self, answer: str) -> bool:
        """Whether the answer says that it was done."""
        word = answer.partition(" ")[0]
        return word == self.done or word in self.also_done

    def is_refused(self, answer: str) -> bool:
        """Whether the answer says that the job is not as it was asked for."""
        return not self.is_done(answer) and answer != self.done_before

    def why_not(self, answer: str, **named: str) -> str:
        """Why nothing was done, in words that follow the id of the job."""
        word, _, other = answer.partition(" ")
        return self.reasons.get(word, self.reasons.get("", "")).format(other=other, **named)


def _requeue_calls(broker: Broker, queue: str, job_ids: Sequence[str], how: How) -> list[Command]:
    if how.target not in ("", queue):
        check_target(how.target, [broker.backend])
    keys = [broker.keys.of(name) for name in (queue, how.target or queue)]
    return [SCRIPTS["requeue"].call_many(keys, (how.latest_ms, how.body, *job_ids))]


def _erase_calls(broker: Broker, queue: str, job_ids: Sequence[str], how: How) -> list[Command]:
    """Delete what is kept of finished jobs, their outcomes last: these say which jobs there are."""
    keys = broker.keys.of(queue)
    beside = [key for job_id in job_ids for key in (keys.log_of(job_id), keys.steps + job_id.encode())]
    return [("UNLINK", *beside), ("HDEL", keys.results, *job_ids)]


def targets_in(places: Sequence[str]) -> set[str]:
    """The queues in which dead letters of these places can be requeued."""
    names = set[str]().union(*map(_queues_of_settings, places))
    return {name for name in names if not any(is_elsewhere(name, place) for place in places)}


def _queues_of_settings(backend: str) -> set[str]:
    """The queues that settings name, in the Redis of a backend in TASKS; "": in RTQ["REDIS"], or in all shards."""
    place, config = place_of(backend), get_config()
    if place and shard_of(place) is None:
        return queues_in(place)
    of_mail = filter(None, [config.email.get("queue_name")])
    return {config.default_queue, *config.queues, *of_mail, *queues_in("")}


def check_target(target: str, places: Sequence[str]) -> None:
    """Raises ValueError, in words, for a queue that is not one of targets_in()."""
    if target in targets_in(places):
        return
    if any(is_elsewhere(target, place) for place in places):
        raise ValueError(f"Queue {target} as a whole is in another shard: jobs cannot be requeued there.")
    raise ValueError(f'Queue {target} is not one of the settings. Name it in RTQ["QUEUES"].')


def _teller(signal: Signal) -> Callable[[str, list[str], How], object]:
    return lambda queue, job_ids, how: signal.send_robust(Actions, job_ids=job_ids, queue=how.target or queue)


def _tell_cancelled(queue: str, job_ids: list[str], how: How) -> None:
    for job_id in job_ids:
        signals.job_cancelled.send_robust(Actions, job_id=job_id, queue=queue)


#: `purge` is about all waiting jobs of a queue or a client: sweep.py calls it. `erase` is about all that is kept of a
#: client: finished jobs, while sweep.py purges and discards the others. `count` does nothing with any job.
ACTIONS: dict[Verb, Action] = {
    "requeue": Action(
        states=("dead",),
        script="requeue",
        calls=_requeue_calls,
        at_once=MAINTAIN_AT_ONCE,
        done="queued",
        leads_to={*JobState} - {JobState.DEAD},
        is_dated=True,
        tell=_teller(signals.job_requeued),
    ),
    "run_now": Action(
        states=("scheduled", "retrying"),
        script="run_now",
        calls=lambda broker, queue, job_ids, how: [
            SCRIPTS["run_now"].call(broker.keys.of(queue), (job_id,)) for job_id in job_ids
        ],
        done="queued",
        leads_to=(JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED),
        tell=_teller(signals.job_promoted),
        reasons={
            "after": "waits until job {other} has ended: only one job of the same unique key may be alive.",
            "paused": "waits because its task is paused. Resume the task first.",
            "finished": "has finished already.",
            "": "is not scheduled or retrying (any more).",
        },
    ),
    "cancel": Action(
        states=(*WAITING, "running"),
        script="cancel",
        calls=lambda broker, queue, job_ids, how: [
            cancel_call(broker.keys.of(queue), broker.config, job_id, how.running) for job_id in job_ids
        ],
        done="cancelled",
        also_done=("asked",),
        done_before="already",
        leads_to=(JobState.CANCELLED,),
        tell=_tell_cancelled,
        reasons=NOT_CANCELLED,
    ),
    "discard": Action(
        states=("dead",),
        script="discard",
        calls=lambda broker, queue, job_ids, how: [
            SCRIPTS["discard"].call(broker.keys.of(queue), (how.latest_ms, *job_ids))
        ],
        at_once=MAINTAIN_AT_ONCE,
        done="discarded",
        leads_to=(None,),
        tell=_teller(signals.job_discarded),
    ),
    "purge": Action(states=WAITING, script="purge"),
    "erase": Action(
        states=(*WAITING, "dead", "finished"),
        script="",
        calls=_erase_calls,
        at_once=MAINTAIN_AT_ONCE,
        done="erased",
    ),
    "count": Action(states=LISTS, script=""),
}

#: What can be done with some jobs of each list, in the order in which it is offered.
VERBS: dict[str, Sequence[Verb]] = {
    state: [verb for verb, action in ACTIONS.items() if state in action.states and action.done and verb != "erase"]
    for state in LISTS
}


class Actions:
    """Acts on jobs of a queue by their ids, and sends signals. Any thread may use it. Raises BrokerError."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def act(self, verb: Verb, queue: str, job_ids: Sequence[str], how: How = PLAINLY) -> Answers:
        """Do it with these jobs. Returns what became of each, and sends signals about those with which it was done."""
        answers: Answers = {}
        action = ACTIONS[verb]
        for start in range(0, len(job_ids), action.at_once):
            answers |= self._send(action, queue, job_ids[start : start + action.at_once], how)
        return answers

    def done(self, verb: Verb, queue: str, job_ids: Sequence[str], how: How = PLAINLY) -> list[str]:
        """act(), but returns the ids of those with which it was done."""
        answers = self.act(verb, queue, job_ids, how)
        return [job_id for job_id, answer in answers.items() if ACTIONS[verb].is_done(answer)]

    def run_now(self, job_id: str, queue: str | None = None) -> None:
        """See OneJob.run_now(). In any queue, if none is named."""
        check_id(job_id)
        has_finished = False
        for name in self._broker.redis.run(names_to_ask(self._broker, queue)):
            answer = self.act("run_now", name, [job_id])[job_id]
            if answer == "queued":
                return
            if answer not in ("missing", "finished"):
                raise WrongState(job_id, ACTIONS["run_now"].why_not(answer))
            has_finished = has_finished or answer == "finished"  # or it was requeued in one of the others
        raise WrongState(job_id, ACTIONS["run_now"].why_not("finished")) if has_finished else JobNotFound(job_id)

    def _send(self, action: Action, queue: str, job_ids: Sequence[str], how: How) -> Answers:
        """One round trip."""
        calls, started = action.calls(self._broker, queue, job_ids, how), time.monotonic()
        try:
            answers = action.read(self._broker.redis.execute(calls), job_ids)
        except BrokerUnavailable as error:
            if not error.is_connection_lost:
                raise
            answers = action.read(self._broker.redis.execute(calls, resend=True), job_ids)
            answers |= self._done_since(started, action, queue, answers, how)
        for worker in {answer.partition(" ")[2] for answer in answers.values() if answer.startswith("asked ")}:
            self._broker.redis.run(
                wake_supervisor_of(self._broker.keys, worker)
            )  # it need not wait for its next heartbeat
        done = [job_id for job_id in job_ids if answers[job_id] == action.done]
        if done:
            action.tell(queue, done, how)
            workflow_store(self._broker).tell(how.target or queue, done)
        return answers

    def _done_since(self, started: float, action: Action, queue: str, answers: Answers, how: How) -> Answers:
        """Those with which the first of two calls did it."""
        unclear = [job_id for job_id, answer in answers.items() if not action.is_done(answer)]
        keys, found = self._broker.keys.of(how.target or queue), Answers()
        calls: list[Command] = [("TIME",), *(SCRIPTS["find_job"].call(keys, (job_id,)) for job_id in unclear)]
        now, *replies = self._broker.redis.execute(calls, resend=True)
        first_ms = clock_ms(now) - (time.monotonic() - started) * 1000 - SLACK_MS
        for job_id, reply in zip(unclear, replies, strict=True):
            job = read_found(job_id, queue, reply)
            ready = job.ready_at if job and action.is_dated else None
            is_older = ready is not None and ready.timestamp() * 1000 < first_ms  # somebody else did it
            if (job and job.state) in action.leads_to and not is_older and stored.has_body(reply[0], how.body):
                found[job_id] = action.done
        return found


def requeue(broker: Broker, queue: str, job_ids: Sequence[str]) -> list[str]:
    """Queue dead letters again, for a workflow. Returns the ids of those that were dead."""
    return Actions(broker).done("requeue", queue, job_ids)


def _word(reply: bytes | list[bytes]) -> str:
    return (reply if isinstance(reply, bytes) else b" ".join(reply)).decode().rstrip()


def changed_body(job: JobDetails, args: Sequence[Any], kwargs: Mapping[str, Any], *, most_bytes: int) -> str:
    """The record of a job with other arguments, without its header. Raises Unserializable and PayloadTooLarge."""
    call = {"args": list(args), "kwargs": dict(kwargs), "headers": job.headers}
    given = {name: value for name, value in call.items() if value}
    body = serializer.dumps({"task": job.task, **given, **job.options}, what=f"the call of {job.task}")
    serializer.check_body(job.task, body, most_bytes)
    return body
