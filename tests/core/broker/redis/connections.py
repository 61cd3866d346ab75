"""Connection settings, caches of both backends, and the connections that are made with them."""

from contextlib import contextmanager
from unittest import mock

import pytest
import redis
from django.test import override_settings
from django_redis.pool import ConnectionFactory

from django_rtq.core.broker.redis.settings import read_connection_settings
from django_rtq.core.conf.config import Config

LOCMEM = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}


def settings_of(source, db=None):
    return read_connection_settings(Config(redis=source, db=db))


@contextmanager
def cache_settings(caches):
    """The settings have these caches. None of them gets a pool that another test made."""
    # django-redis keeps its pools by URL, for the life of the process.
    with mock.patch.object(ConnectionFactory, "_pools", {}), override_settings(CACHES=caches):
        yield


def django_redis(location, **options):
    return {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location, "OPTIONS": options}


def django_redis_pool(location, **kwargs):
    return django_redis(location, CONNECTION_POOL_KWARGS=kwargs)


def native(location, **options):
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": location,
        "OPTIONS": options,
    }


BACKENDS = pytest.mark.parametrize("backend", [django_redis_pool, native], ids=["django-redis", "native"])


def settings_of_alias(cache, db=1):
    with cache_settings({"default": LOCMEM, "shared": cache}):
        return settings_of("shared", db)


@contextmanager
def client_of(connection_settings):
    pool = connection_settings.command_pool(role="test")
    try:
        yield redis.Redis(connection_pool=pool)
    finally:
        pool.disconnect()


@contextmanager
def reader_of(connection_settings, block_seconds=1):
    reader = connection_settings.blocking_pool(role="reader", block_seconds=block_seconds).make_connection()
    try:
        yield reader
    finally:
        reader.disconnect()


def ask(reader, *command):
    reader.send_command(*command)
    return reader.read_response()
