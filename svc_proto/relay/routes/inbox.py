"""Inbox of the host: pasted images (wire core 7.1) and notifications of phones (7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import invalid
from svc_proto.commands import Level, SweepFolder, WriteFile
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.inbox import (
    IMAGE_LIMIT,
    INBOX_FOLDER,
    STALE_AFTER,
    NotificationBuffer,
    image_type,
    inbox_name,
    parse_format,
)
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.media.media_service import MIB, base64_bytes
from svc_proto.relay.ports import PhonesPort

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import NotificationsJson, PastedJson

__all__ = ["INBOX_BODY_LIMIT", "routes"]

INBOX_BODY_LIMIT = 34 * MIB  # bytes: 25 MiB as base64, and the other members (wire core 7.1)
NONCE = 8  # bytes


def routes(relay: PhonesPort) -> list[Route]:
    """Return the routes for pasted images and for notifications of phones."""
    view = _InboxRoutes(relay)
    return [
        Route(
            method="POST",
            pattern="/clipboard/inbox",
            access=RelayAccess.FILES,
            handler=view.paste,
            body_limit=INBOX_BODY_LIMIT,
        ),
        Route(
            method="GET",
            pattern="/notifications/recent",
            access=RelayAccess.LOCAL_OR_NOTIFICATIONS,
            handler=view.notifications,
        ),
    ]


class _InboxRoutes:
    def __init__(self, relay: PhonesPort) -> None:
        self._relay = relay

    def paste(self, request: Request) -> Flow[JsonResponse[PastedJson]]:
        engine = self._relay.engine
        body = request.json_object()
        kind = parse_format(body.get("format"))
        data = base64_bytes(body.get("bytes_base64"), "bytes_base64")
        if len(data) > IMAGE_LIMIT:
            raise Refused(413, "too_large", f"an image may have at most {IMAGE_LIMIT} bytes")
        if image_type(data) != kind:
            raise invalid("bytes_base64", f"an image in the format that is named, {kind}")
        wall = engine.now.wall
        name = inbox_name(wall, body.get("filename_hint"), kind, engine.entropy(NONCE).hex())
        path = yield from run_operation(engine, WriteFile(engine.new_op(), name, data))
        if isinstance(path, Failure):
            full = path.kind is FailureKind.NO_SPACE
            raise Refused(500, "disk_full" if full else "write_failed", "the image could not be stored")
        swept = yield from run_operation(engine, SweepFolder(engine.new_op(), INBOX_FOLDER, wall - STALE_AFTER))
        if isinstance(swept, Failure):
            engine.log(Level.WARNING, "old images not deleted", problem=swept.kind.value)
            swept = 0
        return json_response(200, {"ok": True, "path": path, "size_bytes": len(data), "swept_stale": swept})

    def notifications(self, request: Request) -> JsonResponse[NotificationsJson]:
        found = self._relay.notifications.recent(NotificationBuffer.parse_limit(request.query.get("limit")))
        return json_response(200, {"ok": True, "notifications": found, "count": len(found)})
