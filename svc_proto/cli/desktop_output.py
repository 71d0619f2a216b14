"""Output of the desktop's commands about sessions and devices (wire core 10.6, 10.7), as lines and rows."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from svc_proto.basics.duration_text import short_duration
from svc_proto.cli.desktop_sessions import PairingResult
from svc_proto.cli.durations import short_expiry
from svc_proto.cli.error_text import sanitize_line
from svc_proto.cli.session_store import StoredSession
from svc_proto.engine.request_origin import is_loopback_name
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.urls import parse_url

__all__ = [
    "DEVICE_COLUMNS",
    "device_rows",
    "grants_text",
    "paired_json",
    "paired_lines",
    "status_lines",
    "table",
]

DEVICE_COLUMNS = ("PREFIX", "DEVICE", "DETAILS", "LAST SEEN", "EXPIRES", "TRANSPORT", "GRANTS")
PIN_SHOWN = 12  # characters of a pin, after its prefix (wire core 10.6)
WIDTH = 60  # columns of a small terminal
NOT_ENCRYPTED = ("not encrypted: every host on the way can read", "it, and gets the session token too")
NOTHING = "none stored: pair with svc-relay pair CODE --remote ws://…"


def paired_lines(paired: PairingResult, file: str) -> list[str]:
    """Return the lines that report a successful pairing and the file of the session."""
    session = paired.session
    now = float(session.paired_at)  # so that 30 days are shown as 30 days, and not a moment less
    lines = [f"Paired with {session.url}", f"  Session   {session.token[:8]}…, expires {_expiry(session, now)}"]
    if session.role is not None:
        lines.append(f"  Route     {sanitize_line(session.role)}")
    lines += _grants(session, now)
    if session.cert_pin is not None:
        lines.append(f"  Pin       {session.cert_pin[7 : 7 + PIN_SHOWN]}…")
    url = parse_url(session.url)
    if not url.tls and not is_loopback_name(session.url.encode("utf-8")):
        lines += [f"  {head:<9} {text}" for head, text in zip(("Warning", ""), NOT_ENCRYPTED, strict=True)]
    return [*lines, f"  Stored    {file}"]


def paired_json(paired: PairingResult) -> dict[str, object]:
    """Return the result of a pairing as a JSON object for programs, with only the first 8 characters of the token."""
    session = paired.session
    return {
        "ok": True,
        "url": session.url,
        "token_prefix": session.token[:8],
        "expires_at": session.expires_at,
        "grants": None if session.grants is None else dict(session.grants),
        "server_version": session.server_version,
        "endpoint_role": session.role,
        "transport_hint": paired.transport_hint,
        "cert_pin_sha256": session.cert_pin,
    }


def status_lines(sessions: Mapping[str, StoredSession], now: float, *, reveal: bool) -> list[str]:
    """Return the lines of `svc-relay status`: a block for each stored session, or one line if there is none.

    Tokens are shown only with `reveal`.
    """
    if not sessions:
        return [f"Sessions: {NOTHING}"]
    lines: list[str] = []
    for url, session in sessions.items():
        consent = "given" if session.tools_consented else "not given"
        pin = "none" if session.cert_pin is None else f"{session.cert_pin[7 : 7 + PIN_SHOWN]}…"
        lines += [
            *([""] if lines else []),
            sanitize_line(url),
            f"  Server    {sanitize_line(session.server_version or 'unknown')}",
            f"  Paired    {short_duration(now - session.paired_at)} ago",
            f"  Token     {session.token if reveal else '(redacted)'}",
            f"  Expires   {_expiry(session, now)}",
            f"  Tools     consent {consent}",
            f"  Route     {sanitize_line(session.role or 'as typed')}",
            *_grants(session, now),
            f"  Pin       {pin}",
        ]
    return lines


def device_rows(devices: Sequence[JsonObject], now: float) -> list[tuple[str, ...]]:
    """Return a row for each device, in the order of `DEVICE_COLUMNS`."""
    return [_device(device, now) for device in devices]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Return the lines of a table: the heads, and a line for each row.

    If a line is longer than `width`, each row becomes a block instead: its first cell, then each other cell with its
    head.
    """
    lines = _side_by_side(columns, rows)
    if width is None or max(map(len, lines)) <= width:
        return lines
    indent = max(map(len, columns[1:])) + 4
    blocks = list[str]()
    for row in rows:
        blocks.append(row[0])
        for column, cell in zip(columns[1:], row[1:], strict=True):
            label = f"  {column.capitalize()}"
            blocks += wrap(f"{label:<{indent}}{cell}", max(width, indent + 10), subsequent_indent=" " * indent)
    return blocks


def _side_by_side(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *rows)
    ]


def grants_text(grants: Mapping[str, float | None] | None, now: float) -> str:
    """Return the grants as `name=expiry` (`bridge=in2d`), sorted; `unknown` for None, `none` for an empty map."""
    if not grants:
        return "unknown" if grants is None else "none"
    return " ".join(
        f"{sanitize_line(channel)}={short_expiry(expiry, now).replace(' ', '')}"
        for channel, expiry in sorted(grants.items())
    )


def _device(device: JsonObject, now: float) -> tuple[str, ...]:
    name = sanitize_line(device.text("device_name")) or "unknown"
    details = [
        sanitize_line(device.text(key))
        for key in ("device_model", "device_platform", "client_surface", "device_form_factor")
    ]
    known = list(dict.fromkeys(each for each in details if each and each != "unknown"))
    seen, grants = device.number("last_seen"), device.get_object("grants")
    times = {channel: grants.number(channel) for channel in grants}
    return (
        sanitize_line(device.text("token_prefix")),
        f"{name} (this one)" if device.get("is_current") is True else name,
        ", ".join(known) or "-",
        "online" if device.get("online") is True else "-" if seen is None else f"{short_duration(now - seen)} ago",
        short_expiry(device.number("expires_at"), now),
        sanitize_line(device.text("transport_hint")),
        grants_text(None if device.object_or_none("grants") is None else times, now),
    )


def _expiry(session: StoredSession, now: float) -> str:
    return short_expiry(session.expires_at, now)


def _grants(session: StoredSession, now: float) -> list[str]:
    text = f"  Grants    {grants_text(session.grants, now)}"
    return wrap(text, WIDTH, subsequent_indent=" " * 12, break_on_hyphens=False)
