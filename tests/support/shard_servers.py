"""Puts each shard on a server of its own, where a Cluster has a slot: so one of them can be killed, or hang."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.test import override_settings

from django_rtq.core.conf.config import Config, get_config
from django_rtq.core.extension import parts
from django_rtq.scale import placement
from django_rtq.scale.placement import share_of

_urls: list[str] = []
_config_of_shard = placement.config_of_shard


def put_on(urls: Sequence[str]) -> None:
    """Take these servers from now on; none: where shards are otherwise."""
    _urls[:] = urls
    placement.config_of_shard = _on_server if urls else _config_of_shard
    parts.cache_clear()


def _on_server(number: int) -> Config:
    config = get_config()
    return replace(config, queues=share_of(config.queues, number, len(_urls)), redis=_urls[number])


@contextmanager
def on_servers(urls: Sequence[str], **options: Any) -> Iterator[None]:
    """A block with settings of a shard on each of these servers."""
    before = list(_urls)
    put_on(urls)
    try:
        with override_settings(RTQ={"REDIS": urls[0], "SHARDS": len(urls), **options}):
            yield
    finally:
        put_on(before)
