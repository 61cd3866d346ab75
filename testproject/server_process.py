"""What the private database servers share: they end with the process that starts them, and do not run as root."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent(signum: signal.Signals) -> Callable[[], None]:
    """For preexec_fn, on Linux: the server gets this signal when the process that starts it is killed."""

    def ask() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signum)

    return ask


def server_user(name: str) -> str | None:
    """As whom root runs a server: this user if it exists, or nobody. None: this process is not root."""
    if os.getuid():
        return None
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        return "nobody"
