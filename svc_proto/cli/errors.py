"""Error of a command: one line for people, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the help of a command needs none of it
    from svc_proto.facts import Failure

__all__ = ["FAILED", "USAGE_ERROR", "CliError", "failure_reason"]

FAILED = 1  # the relay or the network refused (wire core 10.1)
USAGE_ERROR = 2  # the command line is invalid (wire core 10.1)

_WHY = {  # by the value of a `FailureKind`
    "not_found": "not found",
    "denied": "permission denied",
    "no_space": "no space left on the device",
    "too_large": "too large",
    "timed_out": "no answer in time",
    "unreachable": "not reachable",
}


class CliError(Exception):
    """Failure of a command. The text has the problem and the remedy on one line, and holds no secret."""

    def __init__(self, text: str, *, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def failure_reason(failure: Failure) -> str:
    """Return the reason of a failed operation in a few words: the host's own text if it has one."""
    return failure.detail or _WHY.get(failure.kind.value, failure.kind.value.replace("_", " "))
