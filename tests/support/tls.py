"""Servers that speak TLS, with a certificate made for the test."""

import re
import subprocess
from contextlib import contextmanager

import pytest

from testproject.redis_server import RedisDidNotStart

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


class Certificate:
    """One for this machine, which signs itself. `arguments` are a server's, `trusted` those of who connects to it."""

    def __init__(self, folder):
        key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
        try:
            subprocess.run(
                [*new, "-days", "2", "-subj", "/CN=localhost", "-addext", NAMES], check=True, capture_output=True
            )
        except FileNotFoundError:
            pytest.skip("openssl is not installed")
        self.path, self.key = certificate, key
        self.trusted = {"ssl": True, "ssl_ca_certs": certificate}

    def arguments(self, port, *, auth_clients="no"):
        """Those of a server that listens with TLS on this port, and without on another one."""
        files = ["--tls-cert-file", self.path, "--tls-key-file", self.key, "--tls-ca-cert-file", self.path]
        return ["--tls-port", str(port), "--tls-auth-clients", auth_clients, *files]


@contextmanager
def skipped_without_tls():
    """Skip the test if the server that is started here has no TLS."""
    try:
        yield
    except RedisDidNotStart as problem:
        if re.search(r"(?s)tls-port.*Bad directive|Failed finding TLS support", str(problem)):  # Redis; Valkey
            pytest.skip("this Redis server has no TLS")
        raise
