"""Sharing and picture messages: both only open a screen in which the user sends (wire/bridge.md 3.7).

A reference to media is checked for its form and not fetched: a bare token, `MEDIA:<token>`, `<scheme>://<token>`,
`MEDIA:<scheme>://<token>` with the scheme of either brand, `MEDIA:/absolute/path`, or a `path`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from clients.phone.handset.device import Device
from clients.phone.handset.screens import MESSAGES
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.moment import Moment
from svc_proto.device.arguments import Arguments, scalar_text
from svc_proto.device.handset import Performed, Reply
from svc_proto.device.refusal import Refusal

__all__ = ["send_mms", "share_media"]

UNKNOWN_TYPE = "application/octet-stream"
CONTENT_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "mp4": "video/mp4",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
SCHEMES = tuple(brand.scheme for brand in BRANDS.values())
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{1,512}")


@frozen
class _Attachment:
    reference: str
    content_type: str


def share_media(device: Device, args: Arguments, now: Moment) -> Performed:
    """Open the share sheet, or the app named by `package`."""
    try:
        attachments, text, package = _parse(args)
        title = args.filled("title")
    except Refusal as refusal:
        raise _failed(refusal.error) from None
    _check(attachments)
    if package is None:
        device.share(title or "Share", now)
    else:
        _open(device, package, {"body": text, "message": text}, now)
    summary = f"share of {_count(attachments)} opened"
    outcome = {"mode": "user_confirmed_share", **_outcome(attachments, package), "summary": summary}
    device.record("share", now, {**_details(attachments, text, package), "title": title or ""})
    return Reply(200, {"ok": True, "status": "share_opened", **outcome})


def send_mms(device: Device, args: Arguments, now: Moment) -> Performed:
    """Open a new message with recipient, text and attachments."""
    try:
        to = args.required("to")
        attachments, text, package = _parse(args)
    except Refusal as refusal:
        raise _failed(refusal.error) from None
    _check(attachments)
    package = package or MESSAGES
    _open(device, package, {"to": to, "message": text, "body": text}, now)
    summary = f"message to {to} with {_count(attachments)} opened"
    outcome = {"mode": "user_confirmed_mms_handoff", **_outcome(attachments, package), "to": to, "summary": summary}
    device.record("mms", now, {**_details(attachments, text, package), "to": to})
    return Reply(200, {"ok": True, "status": "compose_opened", **outcome})


def _parse(args: Arguments) -> tuple[list[_Attachment], str, str | None]:
    attachments = []
    for index, item in enumerate(args.array("attachments")):
        if not isinstance(item, Mapping):
            raise Refusal(400, f"attachments[{index}] must be an object")
        attachment = _attachment(Arguments(item))
        if attachment is None:
            raise Refusal(400, f"attachments[{index}] lacks media, media_token, token or path")
        attachments.append(attachment)
    single = _attachment(args)
    if single is not None:
        attachments.append(single)
    attachments += [_read(scalar_text(item, "media_tokens"), None) for item in args.array("media_tokens")]
    attachments += [_read(f"MEDIA:/{scalar_text(item, 'paths').lstrip('/')}", None) for item in args.array("paths")]
    text = args.filled("text") or args.filled("body") or ""
    if not attachments and not text:
        raise Refusal(400, "give at least one of attachments and text")
    return attachments, text, args.filled("package")


def _attachment(args: Arguments) -> _Attachment | None:
    reference = args.filled("media", "media_token", "token")
    path = args.filled("path")
    file_name, content_type = args.filled("file_name"), args.filled("content_type")
    if reference is not None:
        return _read(reference, content_type, file_name)
    if path is not None:
        return _read(f"MEDIA:/{path.lstrip('/')}", content_type, file_name)
    return None


def _read(reference: str, content_type: str | None, file_name: str | None = None) -> _Attachment:
    ending = (file_name or reference).rpartition(".")[2].lower()
    return _Attachment(reference, content_type or CONTENT_TYPES.get(ending, UNKNOWN_TYPE))


def _check(attachments: list[_Attachment]) -> None:
    for attachment in attachments:
        token = attachment.reference.strip().removeprefix("MEDIA:")
        if token.startswith("/") and len(token) > 1:
            continue
        for scheme in SCHEMES:
            token = token.removeprefix(f"{scheme}://")
        if _TOKEN.fullmatch(token) is None:
            raise _failed("media: not a token or a path", "media_fetch_failed")


def _open(device: Device, package: str, texts: Mapping[str, str], now: Moment) -> None:
    if not device.launch(package, now, "compose"):
        raise _failed("package: no such app to open", "activity_not_found")
    device.fill(package, texts)


def _failed(error: str, reason: str = "invalid_schema") -> Refusal:
    return Refusal(400, error, None, status="failed", reason=reason)


def _outcome(attachments: list[_Attachment], package: str | None) -> dict[str, object]:
    types = [attachment.content_type for attachment in attachments]
    result: dict[str, object] = {"attachments": len(attachments), "content_types": types}
    return result if package is None else {**result, "package": package}


def _details(attachments: list[_Attachment], text: str, package: str | None) -> dict[str, object]:
    return {"media": [each.reference for each in attachments], "text": text, "package": package or ""}


def _count(attachments: list[_Attachment]) -> str:
    if not attachments:
        return "text"
    return "1 attachment" if len(attachments) == 1 else f"{len(attachments)} attachments"
