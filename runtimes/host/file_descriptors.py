"""Limits on the file descriptors of this process."""

import resource
from contextlib import suppress

from svc_proto.wire.limits import DEFAULT_LIMITS, Limits

__all__ = ["limits_per_server", "raise_descriptor_limit"]

MAX_DESCRIPTORS = 65_536  # more than any server here uses; also limits how many a fork copies


def limits_per_server(servers: int, limits: Limits = DEFAULT_LIMITS) -> Limits:
    """Raise this process's limit on descriptors; return the limits of a server that shares it with `servers` in all."""
    return limits.shared(descriptors=raise_descriptor_limit(), servers=servers)


def raise_descriptor_limit() -> int:
    """Raise the soft limit towards the hard one, at most to `MAX_DESCRIPTORS`; return the resulting limit.

    Without a soft limit, return `MAX_DESCRIPTORS`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a sandbox may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
