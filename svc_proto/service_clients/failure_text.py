"""Reasons of failed operations for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the help of a command needs none of it
    from svc_proto.facts import Failure

__all__ = ["failure_reason"]

_REASONS = {  # by the value of a `FailureKind`
    "not_found": "not found",
    "denied": "permission denied",
    "no_space": "no space left on the device",
    "too_large": "too large",
    "timed_out": "no answer in time",
    "unreachable": "not reachable",
}


def failure_reason(failure: Failure) -> str:
    """Return the reason of a failed operation in a few words: the host's own text if it has one."""
    return failure.detail or _REASONS.get(failure.kind.value, failure.kind.value.replace("_", " "))
