"""A project with two shards."""

from tests.scale.shards.conftest import (  # noqa: F401
    clients,
    databases_of_the_session,
    journal,
    patient_clients,
    servers,
    shards,
)
