"""Which commit jobs wait for, as the settings and the option `on_commit` of a task say."""

from __future__ import annotations

from functools import lru_cache

from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS
from django.dispatch import receiver

from django_rtq.conf.config import get_config, is_debug

OnCommit = bool | str | None  # False: at once; True or an alias: after the commit of that database; None: the setting


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


def outbox_database() -> str | None:
    """The database with the outbox; None: there is none."""
    outbox = get_config().outbox
    return DEFAULT_DB_ALIAS if outbox is True else outbox or None


def database_to_await(option: OnCommit) -> str | None:
    """The database after whose commit jobs are sent; None: they are sent at once."""
    rule = _rule_of_settings() if option is None else option
    return DEFAULT_DB_ALIAS if rule is True else rule or None


def explicit_database(option: OnCommit) -> str:
    """The database of delay_on_commit(): the one that the option or the setting names, or the default one."""
    named = option if isinstance(option, str) else _rule_of_settings()
    return named if isinstance(named, str) else DEFAULT_DB_ALIAS


def _rule_of_settings() -> OnCommit:
    config = get_config()
    return config.outbox or config.enqueue_on_commit


@receiver(setting_changed)
def forget_rules(*, setting: str, **kwargs: object) -> None:
    """Ask the settings again when a test overrides them."""
    if setting in ("RTQ", "DEBUG"):
        ignores_transactions.cache_clear()
        integrations_wait.cache_clear()
