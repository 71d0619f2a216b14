"""Routes for sharing and picture messages: both open a screen in which the user sends (wire/bridge.md 3.7)."""

from collections.abc import Mapping

from clients.phone.emulator.device import EmulatedDevice
from clients.phone.emulator.sample_apps import MESSAGES
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments
from svc_proto.phone.backend import CommandRefused, CommandReply, CommandResponse
from svc_proto.phone.outgoing_actions import ShareAction, parse_mms_action, parse_share_action

__all__ = ["send_mms", "share_media"]


def share_media(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Open the share sheet, or the app `package` with the text, and record the share in the outbox."""
    share = parse_share_action(args)
    if share.package is None:
        device.share(share.title or "Share", now)
    else:
        _open(device, share.package, {"body": share.text, "message": share.text}, now)
    summary = f"share of {_count(share)} opened"
    outcome = {"mode": "user_confirmed_share", **_outcome(share, share.package), "summary": summary}
    device.record("share", now, {**_details(share, share.package), "title": share.title or ""})
    return CommandReply(200, {"ok": True, "status": "share_opened", **outcome})


def send_mms(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Open a new message with recipient and text, and record it in the outbox with its attachments."""
    message = parse_mms_action(args)
    to, package = message.to or "", message.package or MESSAGES
    _open(device, package, {"to": to, "message": message.text, "body": message.text}, now)
    summary = f"message to {to} with {_count(message)} opened"
    outcome = {"mode": "user_confirmed_mms_handoff", **_outcome(message, package), "to": to, "summary": summary}
    device.record("mms", now, {**_details(message, package), "to": to})
    return CommandReply(200, {"ok": True, "status": "compose_opened", **outcome})


def _open(device: EmulatedDevice, package: str, texts: Mapping[str, str], now: Moment) -> None:
    if not device.launch(package, now, "compose"):
        error = "package: no such app to open"
        raise CommandRefused(400, error, None, status="failed", reason="activity_not_found")
    device.fill(package, texts)


def _outcome(handover: ShareAction, package: str | None) -> dict[str, object]:
    types = [attachment.content_type for attachment in handover.attachments]
    result: dict[str, object] = {"attachments": len(types), "content_types": types}
    return result if package is None else {**result, "package": package}


def _details(handover: ShareAction, package: str | None) -> dict[str, object]:
    media = [attachment.reference for attachment in handover.attachments]
    return {"media": media, "text": handover.text, "package": package or ""}


def _count(handover: ShareAction) -> str:
    count = len(handover.attachments)
    if count == 0:
        return "text"
    return "1 attachment" if count == 1 else f"{count} attachments"
