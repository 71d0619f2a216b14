"""Cleaning of typed and pasted input: pairing codes, relay addresses (wire core 10.4).

A paste includes what the terminal puts around it, so escape sequences and control characters are removed first.
"""

import re

from svc_proto.basics.entropy import CODE_LENGTH
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.wire.urls import parse_url

__all__ = [
    "parse_pairing_code",
    "parse_relay_url",
    "looks_like_invite",
    "strip_controls",
    "strip_escapes",
]

RELAY_PORT = 8767  # spec: the default for a ws address without a port
SHOWN = {"http://": "ws://", "https://": "wss://"}
MAX_CODE_CHARS = 64  # characters of a possible code; an invite is longer
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI, bracketed paste included
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98]).*?(?:\x07|\x1b\\|\x9c|\Z)"  # OSC, DCS, PM, APC, SOS
    r"|\x1bO[@-~]?"  # SS3: cursor and function keys
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_CODE = re.compile(r"[^A-Za-z0-9]")


def strip_escapes(text: str) -> str:
    """Remove terminal escape sequences, complete or truncated."""
    return _SEQUENCES.sub("", text)


def strip_controls(text: str) -> str:
    """Remove escape sequences and control characters."""
    return _CONTROLS.sub("", strip_escapes(text))


def parse_pairing_code(text: str) -> str:
    """Return the pairing code in a pasted text: its ASCII letters, in upper case, and its digits.

    Raises `CliError`, code 2, unless these are six.
    """
    kept = _NOT_CODE.sub("", strip_controls(text)).upper()
    if len(kept) != CODE_LENGTH:
        raise CliError(
            "a pairing code has six characters of A-Z and 0-9: see svc pair on the relay's host", code=USAGE_ERROR
        )
    return kept


def looks_like_invite(text: str) -> bool:
    """Report whether the text looks like an invite and not like a pairing code."""
    text = strip_controls(text).strip()
    return "://" in text or text.startswith("{") or len(text) > MAX_CODE_CHARS


def parse_relay_url(text: str, name: str = "--remote") -> str:
    """Return a relay's address without pasted control characters; a `ws` one without a port gets port 8767.

    Addresses as servers show them are changed: http to ws, https to wss, a bind address to a loopback one. Raises
    `CliError`, code 2.
    """
    text = strip_controls(text).strip()
    for shown, meant in SHOWN.items():
        if text.lower().startswith(shown):
            text = f"{meant}{text[len(shown) :]}"
    try:
        url = parse_url(text)
    except RemoteProtocolError as error:
        raise CliError(f"{name} must be an address such as ws://192.168.1.5:8767: {error}", code=USAGE_ERROR) from None
    host = WILDCARD_ADDRESSES.get(url.host)
    if host is not None:
        text = text.replace(bracket_ipv6(url.host), bracket_ipv6(host), 1)
    if url.tls or _has_port(text):
        return text
    return f"ws://{bracket_ipv6(host or url.host)}:{RELAY_PORT}{url.target.rstrip('/')}"


def _has_port(text: str) -> bool:
    netloc = text.partition("://")[2].partition("/")[0].partition("?")[0]
    return netloc.rpartition("]")[2].rpartition(":")[1] == ":"
