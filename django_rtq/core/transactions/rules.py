"""Which commit jobs wait for, as the settings and the option `on_commit` of a task say."""

from __future__ import annotations

from functools import lru_cache

from django.apps import apps
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, router
from django.dispatch import receiver

from django_rtq.core.conf.config import get_config, is_debug

#: False: at once; True: after the commit of written_database(); an alias: of that one; None: what the setting says.
OnCommit = bool | str | None


@lru_cache(maxsize=1)
def ignores_transactions() -> bool:
    """Whether nothing in the settings asks what transactions are open when jobs are enqueued."""
    config = get_config()
    rule = config.enqueue_on_commit
    return not rule and not config.outbox and (rule is False or not is_debug())


@lru_cache(maxsize=1)
def integrations_wait() -> bool:
    """Whether jobs of integrations (TASKS, EMAIL_BACKEND) wait for the commit while no setting says it (D122)."""
    config = get_config()
    return config.enqueue_on_commit is None and not config.outbox


def written_database() -> str:
    """The database that True names: "default", or the one in which the routers of the project write our tables."""
    if not router.routers or not apps.models_ready or not apps.is_installed("django_rtq"):
        return DEFAULT_DB_ALIAS
    alias: str = router.db_for_write(apps.get_model("django_rtq", "OutboxJob"))
    return alias


def outbox_database() -> str | None:
    """The database with the outbox; None: there is none."""
    outbox = get_config().outbox
    return written_database() if outbox is True else outbox or None


def database_to_await(option: OnCommit) -> str | None:
    """The database after whose commit jobs are sent; None: they are sent at once."""
    rule = _rule_of_settings() if option is None else option
    return written_database() if rule is True else rule or None


def named_database(option: OnCommit = None) -> str | None:
    """The database that the option or the setting names by its alias."""
    named = option if isinstance(option, str) else _rule_of_settings()
    return named if isinstance(named, str) else None


def _rule_of_settings() -> OnCommit:
    config = get_config()
    return config.outbox or config.enqueue_on_commit


@receiver(setting_changed)
def forget_rules(*, setting: str, **kwargs: object) -> None:
    """Ask the settings again when a test overrides them."""
    if setting in ("RTQ", "DEBUG"):
        ignores_transactions.cache_clear()
        integrations_wait.cache_clear()
