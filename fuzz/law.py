"""The law alone, in place of the plain lane and the law: for tests that have both do the same.

`obey()` turns the lane off for a whole process. The product has no switch for it: nobody who runs it needs one.
"""

from __future__ import annotations

from svc_proto.basics.entropy import Entropy
from svc_proto.engine import server
from svc_proto.wire.connection import Role, ServerConnection
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits

__all__ = ["Law", "obey"]


class Law(Http1Connection, ServerConnection):
    """A server's connection that has every request and every answer event by event."""

    def __init__(self, *, limits: Limits, entropy: Entropy) -> None:
        super().__init__(Role.SERVER, limits=limits, entropy=entropy)


def obey() -> None:
    """From now on each connection of a server of this process is the law alone."""
    setattr(server, "PlainConnection", Law)  # noqa: B010 - a stand-in of another type
