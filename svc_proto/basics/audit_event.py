"""Audit events (`EVENT_NAMES`): records for the store about access, settings, memory and backups.

Callers leave out secrets and private texts; texts are cut and made printable here.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.sanitize import sanitize_line

__all__ = ["EVENT_NAMES", "MAX_AGE", "MAX_EVENTS", "OPERATOR", "AuditEvent"]

MAX_EVENTS = 10_000  # events in the store; the oldest are dropped
MAX_AGE = 31_536_000.0  # s, one year
MAX_TEXT = 200  # characters of each text
OPERATOR = "operator"  # principal of programs of the host
EVENT_NAMES = (
    "paired",  # a device exchanged a code for a session
    "signed in",  # a device opened a WebSocket from another address than before
    "agent allowed",  # an OAuth client got a session
    "session changed",  # its lifetime, grants or rights
    "session revoked",
    "approval given",
    "approval ended",
    "changes undone",
    "setting changed",
    "profile changed",  # a device changed a text of the agent's profile
    "memory changed",
    "key rotated",
    "backup restored",
)


@fast_frozen(kw_only=True)
class AuditEvent:
    """Event of the audit log. `about` has further texts, such as the prefix of the session that was changed."""

    at: float  # wall time in epoch seconds
    event: str  # of `EVENT_NAMES`
    principal: str
    address: str = ""  # of the client; empty: this host, or unknown
    about: Mapping[str, str] = {}

    @classmethod
    def of(cls, at: float, event: str, principal: str, address: str = "", /, **about: object) -> AuditEvent:
        """Return an event with printable texts of limited length; members that are None are left out."""
        texts = {name: _text(str(value)) for name, value in about.items() if value is not None}
        return cls(at=at, event=event, principal=_text(principal), address=_text(address), about=texts)


def _text(value: str) -> str:
    return sanitize_line(value.encode("utf-8", "replace").decode("utf-8"))[:MAX_TEXT]
