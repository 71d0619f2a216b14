"""How many file descriptors this process may have."""

from __future__ import annotations

import resource
from contextlib import suppress

__all__ = ["raise_descriptors"]

MOST = 65_536  # more than any server here has use for, and what a fork copies


def raise_descriptors() -> int:
    """Raise the soft limit to the hard one, as far as there is use for it; how many there may be from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a sandbox may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MOST if soft == resource.RLIM_INFINITY else soft
