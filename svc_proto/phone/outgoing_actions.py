"""Outgoing actions: data that would leave the phone by the four always-confirmed routes (wire bridge 3.7, 5.5).

The confirmation and the phone backend both use this parsed form, so that the confirmed action is the executed one. An
unknown member is refused, not ignored: the backend must not use a member that the user was not shown.

A reference to media is checked for its form and not fetched. Forms: a bare token, `MEDIA:<token>`,
`<scheme>://<token>`, `MEDIA:<scheme>://<token>` with the scheme of either brand, `/absolute/path` with or without
`MEDIA:`, or a `path`.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from svc_proto.basics.brand import BRANDS
from svc_proto.basics.content_types import content_type_of
from svc_proto.phone.arguments import CommandArguments, scalar_text
from svc_proto.phone.backend import CommandRefused

__all__ = [
    "READERS",
    "ShareAction",
    "OutgoingAction",
    "OutgoingFile",
    "CallAction",
    "SmsAction",
    "parse_call_action",
    "parse_mms_action",
    "parse_share_action",
    "parse_sms_action",
]

SMS_SCHEMA = {"to": "string, required", "body": "string, required"}
_SCHEMES = tuple(brand.scheme for brand in BRANDS.values())
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{1,512}")
_DIALABLE = re.compile(r"[0-9 +().,*#pw-]{2,}")
_RECIPIENT = re.compile(r"[0-9 +().-]*[0-9][0-9 +().-]*")
_REFERENCE = ("media", "media_token", "token")  # spellings of one member
_ONE_ATTACHMENT = (*_REFERENCE, "path", "content_type", "file_name")
_SHARED = ("attachments", *_ONE_ATTACHMENT, "media_tokens", "paths", "text", "body", "title", "package")


@frozen
class CallAction:
    """Phone call: `/call`."""

    number: str

    @property
    def question_text(self) -> str:
        """The text that the user confirms: the number to be called."""
        return self.number


@frozen(kw_only=True)
class SmsAction:
    """Text message: `/send_sms`; `to` is one line of digits, spaces and signs."""

    to: str
    body: str

    @property
    def question_text(self) -> str:
        """The text of the confirmation: the recipient, then all of the message."""
        return f"{self.to}\n{self.body}"


@frozen
class OutgoingFile:
    """File to send: the reference to it, and its announced or guessed content type."""

    reference: str
    content_type: str

    @property
    def source(self) -> str:
        """The absolute path on the host, or the token in the relay's registry."""
        source = self.reference.strip().removeprefix("MEDIA:")
        if not source.startswith("/"):
            for scheme in _SCHEMES:
                source = source.removeprefix(f"{scheme}://")
        return source


@frozen(kw_only=True)
class ShareAction:
    """Content for an app on the phone: `/share_media`, or with `to` `/send_mms`."""

    to: str | None
    attachments: tuple[OutgoingFile, ...]
    text: str
    title: str | None
    package: str | None

    @property
    def question_text(self) -> str:
        """The text of the confirmation: a line for each member that is set and for each attachment; `text` is last.

        The text may have several lines.
        """
        lines = [] if self.to is None else [_line("to", self.to)]
        lines += [] if self.package is None else [_line("app", self.package)]
        lines += [] if self.title is None else [_line("title", self.title)]
        lines += [_line("file" if "/" in each.source else "media", each.source) for each in self.attachments]
        return "\n".join([*lines, f"text {self.text}"] if self.text else lines)


OutgoingAction: TypeAlias = CallAction | SmsAction | ShareAction


def parse_call_action(args: CommandArguments) -> CallAction:
    """Parse the arguments of `/call`; raise `CommandRefused` 400 for invalid ones."""
    args.only("number")
    number = args.required("number").strip()
    if _DIALABLE.fullmatch(number) is None:
        raise CommandRefused(400, "number: two or more of digits, space and + ( ) - . , * # p w")
    return CallAction(number)


def parse_sms_action(args: CommandArguments) -> SmsAction:
    """Parse the arguments of `/send_sms`; raise `CommandRefused` 400 for invalid ones."""
    try:
        args.only("to", "body")
        to, body = args.required("to"), args.text("body")
    except CommandRefused as refusal:
        raise _bad_sms(refusal.error) from None
    if not body:
        raise _bad_sms("missing or empty argument: body")
    if _RECIPIENT.fullmatch(to) is None:
        raise CommandRefused(400, "to: not a phone number", None, status="failed", reason="invalid_recipient")
    return SmsAction(to=to, body=body)


def parse_share_action(args: CommandArguments) -> ShareAction:
    """Parse the arguments of `/share_media`; raise `CommandRefused` 400 for invalid ones."""
    return _read(args, recipient=False)


def parse_mms_action(args: CommandArguments) -> ShareAction:
    """Parse the arguments of `/send_mms`; raise `CommandRefused` 400 for invalid ones."""
    return _read(args, recipient=True)


READERS: dict[str, Callable[[CommandArguments], OutgoingAction]] = {
    "/call": parse_call_action,
    "/send_sms": parse_sms_action,
    "/send_mms": parse_mms_action,
    "/share_media": parse_share_action,
}
"""Parsers by path: column "always confirm" of wire bridge 5.2. Each raises `CommandRefused` 400 for invalid input."""


def _read(args: CommandArguments, *, recipient: bool) -> ShareAction:
    try:
        args.only(*_SHARED, *(("to",) if recipient else ()))
        to = args.required("to") if recipient else None
        attachments = _attachments(args)
        text = args.non_blank_text("text") or args.non_blank_text("body") or ""  # "`text` wins"
        if not attachments and not text:
            raise CommandRefused(400, "give at least one of attachments and text")
        title, package = args.non_blank_text("title"), args.non_blank_text("package")
    except CommandRefused as refusal:
        raise _failed(refusal.error, "invalid_schema") from None
    for attachment in attachments:
        source = attachment.source
        if source == "/" or (not source.startswith("/") and _TOKEN.fullmatch(source) is None):
            raise _failed("media: not a token or a path", "media_fetch_failed")
    return ShareAction(to=to, attachments=tuple(attachments), text=text, title=title, package=package)


def _attachments(args: CommandArguments) -> list[OutgoingFile]:
    attachments = []
    for index, item in enumerate(args.array("attachments")):
        if not isinstance(item, Mapping):
            raise CommandRefused(400, f"attachments[{index}] must be an object")
        members = CommandArguments(item)
        members.only(*_ONE_ATTACHMENT)
        attachment = _attachment(members)
        if attachment is None:
            raise CommandRefused(400, f"attachments[{index}] lacks media, media_token, token or path")
        attachments.append(attachment)
    single = _attachment(args)
    if single is not None:
        attachments.append(single)
    attachments += [_typed(scalar_text(item, "media_tokens")) for item in args.array("media_tokens")]
    attachments += [_typed(_from_path(scalar_text(item, "paths"))) for item in args.array("paths")]
    return attachments


def _attachment(args: CommandArguments) -> OutgoingFile | None:
    reference, path = args.non_blank_text(*_REFERENCE), args.non_blank_text("path")
    if reference is None:
        if path is None:
            return None
        reference = _from_path(path)
    return _typed(reference, args.non_blank_text("content_type"), args.non_blank_text("file_name"))


def _from_path(path: str) -> str:
    return f"MEDIA:/{path.lstrip('/')}"


def _typed(reference: str, content_type: str | None = None, file_name: str | None = None) -> OutgoingFile:
    return OutgoingFile(reference, content_type or content_type_of(file_name or reference))


def _line(label: str, value: str) -> str:
    """Return a label and a value on one line; an unprintable value is escaped, so that it adds no line."""
    return f"{label} {value if value.isprintable() else ascii(value)}"


def _bad_sms(error: str) -> CommandRefused:
    return CommandRefused(400, error, None, status="failed", reason="invalid_schema", expected_schema=dict(SMS_SCHEMA))


def _failed(error: str, reason: str) -> CommandRefused:
    return CommandRefused(400, error, None, status="failed", reason=reason)
