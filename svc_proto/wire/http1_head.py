"""Checks on the bytes of a head that h11 does not make, or makes too late; they keep smuggled requests out.

Rules, all of RFC 9112 unless noted
  section 2.2    a CR or LF outside of CRLF: 400
  section 2.5    a version other than 1.0 and 1.1: 505
  section 5.2    a folded line: 400
  section 6.1    Transfer-Encoding together with Content-Length, or in HTTP/1.0: 400
  section 6.3    Content-Length twice, or as a list: 400
  section 3.2    Host twice, empty, or as a list: 400
  section 3.2.3  CONNECT: 501
  RFC 6585       more fields or bytes than `Limits` has: 431

Each check is one pass in C over the head. Names are looked for as `CRLF name ":"` in the head in lower case: h11 then
refuses every line in which anything stands between a name and its colon.
"""

from __future__ import annotations

import re

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.limits import Limits

__all__ = ["END", "check_partial_head", "check_request_head", "check_response_head"]

END = b"\r\n\r\n"
SPACE = 0x20
NO_LINE = "the request line is missing"
BARE_END = "a bare CR or LF in the head"
LENGTH = b"\r\ncontent-length:"
CODING = b"\r\ntransfer-encoding:"
HOST = b"\r\nhost:"
_BARE = re.compile(rb"(?<!\r)\n|\r[^\n]")
_REQUEST_LINE = re.compile(rb"[^ ]+ [^ ]+ HTTP/[0-9]\.[0-9]")
_NUMBER = re.compile(rb"[ \t]*[0-9]+[ \t]*\r")
# RFC 3986 section 3.2 without user information, in lower case
_AUTHORITY = re.compile(rb"[ \t]*(?:[a-z0-9._~%!$&'()*+;=-]+|\[[0-9a-f:.]+\])(?::[0-9]*)?[ \t]*\r")


def check_request_head(head: bytes, limits: Limits) -> bool:
    """Raise `RemoteProtocolError` for a head that must not be believed; tell whether a body follows it."""
    lowered = _check_lines(head, limits)
    current = head.endswith(b" HTTP/1.1", 0, head.find(b"\r"))
    if not current:
        _check_other_version(head, lowered)
    if lowered.startswith(b"connect "):
        raise RemoteProtocolError("CONNECT is not implemented", status=501)
    at = lowered.find(HOST)
    if at >= 0:
        if lowered.find(HOST, at + 1) >= 0:
            raise RemoteProtocolError("Host is given twice")
        if not _AUTHORITY.match(lowered, at + len(HOST)):
            raise RemoteProtocolError("Host is malformed")
    elif current:
        raise RemoteProtocolError("Host is missing")
    return _check_framing(lowered)


def check_response_head(head: bytes, limits: Limits) -> None:
    """Raise `RemoteProtocolError` for a head that must not be believed."""
    lowered = _check_lines(head, limits)
    if not head.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")):
        raise RemoteProtocolError("the status line is malformed")
    _check_framing(lowered)


def check_partial_head(inbox: bytearray, searched: int, limits: Limits) -> None:
    """Raise `RemoteProtocolError` when no end can make a head of this beginning.

    `searched` is how much of it an earlier call has seen.
    """
    if inbox[0] <= SPACE:
        raise RemoteProtocolError(NO_LINE)
    if _BARE.search(inbox, max(0, searched - 1)):
        raise RemoteProtocolError(BARE_END)
    if len(inbox) >= limits.max_head:
        raise RemoteProtocolError(f"the head has more than {limits.max_head} bytes", status=431)


def _check_lines(head: bytes, limits: Limits) -> bytes:
    # First what `check_partial_head` looks for, so that it makes no difference in how many pieces a head arrives.
    if head[0] <= SPACE:
        raise RemoteProtocolError(NO_LINE)
    lines = head.count(b"\r\n")
    if head.count(b"\n") != lines or head.count(b"\r") != lines:
        raise RemoteProtocolError(BARE_END)
    if b"\n " in head or b"\n\t" in head:
        raise RemoteProtocolError("a folded line in the head")
    if lines - 2 > limits.max_fields:
        raise RemoteProtocolError(f"the head has more than {limits.max_fields} fields", status=431)
    if len(head) > limits.max_head:
        raise RemoteProtocolError(f"the head has more than {limits.max_head} bytes", status=431)
    return head.lower()


def _check_other_version(head: bytes, lowered: bytes) -> None:
    line = head[: head.find(b"\r")]
    if not _REQUEST_LINE.fullmatch(line):
        raise RemoteProtocolError("the request line is malformed")
    if not line.endswith(b"1.0"):
        raise RemoteProtocolError("only HTTP/1.0 and HTTP/1.1 are spoken here", status=505)
    if CODING in lowered:
        raise RemoteProtocolError("Transfer-Encoding in an HTTP/1.0 request")


def _check_framing(lowered: bytes) -> bool:
    at = lowered.find(LENGTH)
    if at < 0:
        return CODING in lowered
    if CODING in lowered:
        raise RemoteProtocolError("Content-Length together with Transfer-Encoding")
    if lowered.find(LENGTH, at + 1) >= 0:
        raise RemoteProtocolError("Content-Length is given twice")
    if not _NUMBER.match(lowered, at + len(LENGTH)):
        raise RemoteProtocolError("Content-Length is not a number", code="invalid_content_length")
    return True
