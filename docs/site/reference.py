"""Pages of the site that are made of the code: the options of the commands, the metrics, and the keys in Redis."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from datetime import datetime, timezone

from django.core.management import BaseCommand, get_commands, load_command_class

from django_rtq.console.reading.overview import Overview
from django_rtq.console.server_info import ServerDetails
from django_rtq.core.broker.keys import QUEUE_KEYS


def commands() -> str:
    """Each command with its actions, options and exit codes, as --help prints them."""
    names = sorted(name for name, app in get_commands().items() if app == "django_rtq")
    return "\n".join(_command(name) for name in names)


def metrics() -> str:
    """The metrics for Prometheus, with their labels and help texts. Needs prometheus_client."""
    from django_rtq.monitoring.prometheus import metrics_of

    nothing = Overview(now=datetime.now(timezone.utc), queues=[], workers=[], server=ServerDetails(now_ms=0))
    rows = ["| metric | labels | what it is |", "|---|---|---|"]
    for metric in metrics_of(nothing, [], {}):
        name = metric.name + ("_total" if metric.type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in getattr(metric, "_labelnames", ()))
        kind = "Histogram: " if metric.type == "histogram" else ""
        rows.append(f"| `{name}` | {labels} | {kind}{_escaped(metric.documentation)} |")
    return "\n".join(rows) + "\n"


def keys() -> str:
    """The keys of a queue, as core/broker/keys.py has them."""
    rows = ["| key | type | holds |", "|---|---|---|"]
    for key in QUEUE_KEYS.values():
        name = key.name + ":".join(f"<{part}>" for part in key.per.split(":") if part)
        rows.append(f"| `{name}` | {key.kind} | {_escaped(key.holds)} |")
    return "\n".join(rows) + "\n"


def _command(name: str) -> str:
    parser = load_command_class("django_rtq", name).create_parser("manage.py", name)
    lines = [f"## {name}", "", _escaped(parser.description or ""), ""]
    actions = {
        choice: (sub, action._choices_actions[number].help)
        for action in parser._actions
        if isinstance(action, _SubParsersAction)
        for number, (choice, sub) in enumerate(action.choices.items())
    }
    for choice, (sub, help_text) in actions.items():
        names = [str(action.metavar or action.dest).upper() for action in own(sub) if not action.option_strings]
        lines.append(f"- **`{' '.join([choice, *names])}`**: {_escaped(help_text or '')}")
    lines += ["", "Options:", "", *_options(parser, {choice: sub for choice, (sub, _) in actions.items()}), ""]
    if parser.epilog:
        lines += [_escaped(parser.epilog), ""]
    return "\n".join(lines)


def _options(parser: ArgumentParser, subparsers: dict[str, ArgumentParser]) -> Iterator[str]:
    """One line for each option and text, with the actions that take it unless all do."""
    takers: dict[tuple[str, str], list[str]] = {}
    for choice, each in {"": parser, **subparsers}.items():
        for action in own(each):
            if action.help != SUPPRESS and not isinstance(action, _SubParsersAction):
                takers.setdefault((_spelled(action), action.help or ""), []).append(choice)
    for (spelled, help_text), choices in takers.items():
        is_general = "" in choices or len(choices) == len(subparsers)
        takers_named = "" if is_general else f" ({', '.join(choices)})"
        yield f"- `{spelled}`{takers_named}: {_escaped(help_text)}"


def own(parser: ArgumentParser) -> list[Action]:
    """What a command takes beside the options of all commands of Django."""
    general = set(BaseCommand().create_parser("manage.py", "any")._option_string_actions)
    return [action for action in parser._actions if not set(action.option_strings) & general]


def _spelled(action: Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or "|".join(action.choices or []) or action.dest.upper())
    if not action.option_strings:
        return value
    optional = f"[{value}]" if action.nargs == "?" else value
    return f"{', '.join(action.option_strings)} {optional}".rstrip()


def _escaped(text: str) -> str:
    """A text in which Markdown finds no markup but its code."""
    text = " ".join(text.split()).replace("%%", "%").replace("%(default)s", "…")
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<\[|])", r"\\\1", part) for part in re.split(r"(`[^`]*`)", text)
    )
