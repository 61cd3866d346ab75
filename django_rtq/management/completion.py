"""Completion of the commands of manage.py in bash and zsh: also of queues, tasks and ids of jobs.

The shell runs manage.py with the variable _ARGCOMPLETE and no arguments, as the package argcomplete describes. Django
knows nothing of it, so the app answers when it is ready.
"""

from __future__ import annotations

import os
import sys
from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from django_rtq.exceptions import RTQError
from django_rtq.inspector.actions import ACTIONS
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.selection import Selection
from django_rtq.management.job_arguments import LISTED_STATES, VERBS
from django_rtq.management.job_selection import find_jobs
from django_rtq.tasks.registry import all_tasks, declared_queues

PROGRAMS = ("manage.py", "django-admin")
MOST_IDS = 200
Completer = Callable[..., Iterable[str] | Mapping[str, str]]


def answer() -> None:
    """Say how the line can go on, and end the process, if a shell asks manage.py and argcomplete is installed.

    Other programs that are completed may set up Django, too.
    """
    if len(sys.argv) > 1 or Path(sys.argv[0]).name not in PROGRAMS:
        return
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(_parser(os.environ["COMP_LINE"].split()), always_complete_options=False)


def _parser(words: list[str]) -> ArgumentParser:
    """A parser of all commands, with the arguments of the one that is in the line: to import all takes too long."""
    parser = ArgumentParser()
    commands: _SubParsersAction[ArgumentParser] = parser.add_subparsers()
    for name, app in sorted(get_commands().items()):
        if name in words:
            command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
            commands.choices[name] = command.create_parser("manage.py", name)
            for action in _actions(commands.choices[name]):
                if completer := COMPLETERS.get(action.dest):
                    action.completer = completer  # type: ignore[attr-defined]
        else:
            commands.add_parser(name)
    return parser


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, _SubParsersAction):
            for child in action.choices.values():
                yield from _actions(child)


def _safe(complete: Completer) -> Completer:
    """Without Redis, or with wrong settings, there is nothing to offer."""

    @wraps(complete)
    def complete_safely(**given: Any) -> Iterable[str] | Mapping[str, str]:
        try:
            return complete(**given)
        except RTQError:
            return []

    return complete_safely


@_safe
def complete_queues(prefix: str, **given: Any) -> Iterable[str]:
    """Queues that are declared or in use, also behind a comma."""
    before = prefix[: prefix.rfind(",") + 1]
    names = sorted({*declared_queues(), *get_inspector().queues.names()})
    return [before + name for name in names if name not in before.split(",")]


def complete_task(**given: Any) -> Iterable[str]:
    """The names of the tasks."""
    return [name for name, task in all_tasks().items() if not task.internal]


@_safe
def complete_job(parsed_args: Namespace, **given: Any) -> Mapping[str, str]:
    """The first ids of jobs that the action is for, with their tasks, which zsh shows."""
    verb = VERBS.get(parsed_args.action)
    states = ACTIONS[verb].states if verb else LISTED_STATES
    queues = [parsed_args.queue] if parsed_args.queue else []
    return {job.id: job.task for job in find_jobs(get_inspector(), Selection(queues=queues, states=states), MOST_IDS)}


#: By the names of arguments.
COMPLETERS: Mapping[str, Completer] = {
    "queue": complete_queues,
    "queues": complete_queues,
    "to": complete_queues,
    "task": complete_task,
    "tasks": complete_task,
    "ids": complete_job,
}
