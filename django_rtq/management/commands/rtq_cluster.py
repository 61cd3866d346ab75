"""manage.py rtq_cluster: put a slot together whose master died while it moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from django_rtq.broker.brokers import open_broker
from django_rtq.broker.task_backends import viewed_backend
from django_rtq.inspector.cluster_slot import HiddenKeys, find_hidden_keys, recover
from django_rtq.management.command import Action, ActionCommand, Options
from django_rtq.management.output import count


class Command(ActionCommand):
    help = "Put the slot of a Redis Cluster together whose master died while the slot moved to another one."
    exit_codes = (
        "Exit codes: 0 done, or there was nothing to do; 1 no Cluster, or a node did not answer; 64 wrong usage."
    )
    actions = {
        "recover": Action(
            "Find keys on masters that do not own the slot, and move the slot there with all other keys. Jobs wait "
            "meanwhile. Needs a user who may use CLUSTER SETSLOT, DUMP and RESTORE."
        )
    }

    def do_recover(self, options: Options) -> None:
        broker = open_broker(viewed_backend(), role="command")
        try:
            if broker.connection_settings.cluster is None:
                raise CommandError('RTQ["REDIS"] is no Cluster.')
            found: list[dict[str, Any]] = []
            while hidden := find_hidden_keys(broker, even_if_moving=True):
                moved = 0 if options["dry_run"] else recover(broker, hidden[0])
                found.append(_facts(hidden[0], moved))
                if options["dry_run"]:
                    break
            sentences = [_sentence(facts, is_dry=options["dry_run"]) for facts in found]
            self.report(options, {"recovered": found}, sentences or ["The slot is in one place."])
        finally:
            broker.close()


def _facts(hidden: HiddenKeys, moved: int) -> dict[str, Any]:
    return {"owner": hidden.owner.address, "holder": hidden.holder.address, "hidden": hidden.count, "moved": moved}


def _sentence(facts: Mapping[str, Any], *, is_dry: bool) -> str:
    found = f"{facts['holder']} has {count(facts['hidden'], 'key')} of the slot of {facts['owner']}"
    return f"{found}. Would move the slot there." if is_dry else f"{found}. Moved the slot there."
