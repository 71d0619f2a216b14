"""Checks on the bytes of a head that h11 omits, or makes too late; they keep smuggled requests out.

Rules, all of RFC 9112 unless noted
section 2.2      a CR or LF outside of CRLF: 400
section 2.5      a version other than 1.0 and 1.1: 505
section 3        a request line that does not end within `Limits.max_head`: 414
section 3.2      Host missing (1.1), twice, empty, a list, with user information or a path, no authority at all: 400
section 3.2.1    a target that is neither a path nor one of the forms below: 400
section 3.2.2    an absolute target: its authority replaces Host; 400 if it is no valid http(s) authority
section 3.2.3    CONNECT: 501
section 3.2.4    the target `*` with a method other than OPTIONS: 400
section 5.2      a folded line: 400
section 6.1      Transfer-Encoding together with Content-Length, or in HTTP/1.0: 400; a coding before `chunked`: 501
section 6.3      Content-Length twice, or as a list; a Transfer-Encoding that does not end in `chunked`: 400
RFC 9110 5.5     a control character: 400
RFC 6585 5       more fields or bytes than `Limits` has: 431

Each check is one pass in C over the head. Names are searched as `CRLF name ":"` in the head in lower case: h11 then
refuses every line in which anything stands between a name and its colon.

Only the first `max_head` bytes are checked, however many have arrived. So the result does not depend on the number of
pieces in which a head arrives: the same error is found at the same byte.
"""

import re
from enum import IntEnum

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.authority import AUTHORITY, is_ipv6_literal
from svc_proto.wire.events import Headers
from svc_proto.wire.limits import Limits

__all__ = [
    "END",
    "Framing",
    "check_fields",
    "check_partial_head",
    "check_partial_lines",
    "check_request_head",
    "check_response_head",
    "host_of_target",
]

END = b"\r\n\r\n"
SPACE = 0x20
SLASH = 0x2F
NO_LINE = "the request line is missing"
BARE_END = "a bare CR or LF"
LENGTH = b"\r\ncontent-length:"
CODING = b"\r\ntransfer-encoding:"
HOST = b"\r\nhost:"
CONTROLS = bytes(n for n in range(32) if n not in b"\t\r\n") + b"\x7f"  # CR and LF have a check of their own
_BARE = re.compile(rb"(?<!\r)\n|\r[^\n]")
_REQUEST_LINE = re.compile(rb"[^ ]+ [^ ]+ HTTP/[0-9]\.[0-9]")
_NUMBER = re.compile(rb"[ \t]*([0-9]+)[ \t]*\r")
_CODINGS = re.compile(rb"\r\ntransfer-encoding:([^\r]*)")
_HOST = re.compile(rb"[ \t]*" + AUTHORITY + rb"[ \t]*\r")
_ABSOLUTE = re.compile(rb"https?://(" + AUTHORITY + rb")(?:[/?][^ ]*)?")


class Framing(IntEnum):
    """Delimiter of a body, as the head declares it."""

    NONE = 0
    LENGTH = 1
    CHUNKED = 2


def check_request_head(head: bytes, limits: Limits) -> Framing:
    """Check a request head and return how its body is delimited. Raises `RemoteProtocolError`."""
    lowered = check_fields(head, limits)
    current = head.endswith(b" HTTP/1.1", 0, head.find(b"\r"))
    if not current:
        _check_other_version(head, lowered)
    if lowered.startswith(b"connect "):
        raise RemoteProtocolError("CONNECT is not implemented", status=501)
    if head[head.find(b" ") + 1] != SLASH:
        _check_other_target(head, lowered)
    at = lowered.find(HOST)
    if at != -1:
        if lowered.find(HOST, at + 1) != -1:
            raise RemoteProtocolError("Host is given twice")
        found = _HOST.match(lowered, at + len(HOST))
        if found is None or (found[1] and not is_ipv6_literal(found[1])):
            raise RemoteProtocolError("Host is malformed")
    elif current:
        raise RemoteProtocolError("Host is missing")
    return _framing(lowered)


def check_response_head(head: bytes, limits: Limits) -> Framing:
    """Check a response head and return how a body would be delimited. Raises `RemoteProtocolError`."""
    lowered = check_fields(head, limits)
    if not head.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")):
        raise RemoteProtocolError("the status line is malformed")
    if head.startswith(b"HTTP/1.0") and CODING in lowered:
        raise RemoteProtocolError("Transfer-Encoding in an HTTP/1.0 response")
    return _framing(lowered)


def check_partial_head(inbox: bytearray, searched: int, limits: Limits) -> None:
    """Check an incomplete head; its fields are checked only when it is complete.

    Raise `RemoteProtocolError` for white space or a control character at the start, a bare CR or LF, and for `max_head`
    bytes or more. `searched` bytes were checked by an earlier call.
    """
    if inbox[0] <= SPACE:
        raise RemoteProtocolError(NO_LINE)
    if check_partial_lines(inbox, searched, limits):
        if inbox.find(b"\r\n", 0, limits.max_head) == -1:
            raise RemoteProtocolError(f"the first line has more than {limits.max_head} bytes", status=414)
        raise RemoteProtocolError(f"the head has more than {limits.max_head} bytes", status=431)


def check_partial_lines(inbox: bytearray, searched: int, limits: Limits) -> bool:
    """Report whether the input has reached `max_head` bytes without the end of its lines.

    `searched` bytes were checked by an earlier call. Raise `RemoteProtocolError` for a bare CR or LF within `max_head`
    bytes.
    """
    if _BARE.search(inbox, max(0, searched - 1), limits.max_head):
        raise RemoteProtocolError(BARE_END)
    return len(inbox) >= limits.max_head


def check_fields(block: bytes, limits: Limits) -> bytes:
    """Check the lines of a head and return it in lower case.

    Raise `RemoteProtocolError` for white space at the start, a bare CR or LF, a folded line, a control character, and
    for more than `max_fields` fields.
    """
    # First the checks of partial lines, so that the result does not depend on the number of pieces.
    if block[0] <= SPACE:
        raise RemoteProtocolError(NO_LINE)
    lines = block.count(b"\r\n")
    if block.count(b"\n") != lines or block.count(b"\r") != lines:
        raise RemoteProtocolError(BARE_END)
    if b"\n " in block or b"\n\t" in block:
        raise RemoteProtocolError("a folded line")
    if len(block.translate(None, CONTROLS)) != len(block):
        raise RemoteProtocolError("a control character")
    if lines - 2 > limits.max_fields:
        raise RemoteProtocolError(f"there are more than {limits.max_fields} fields", status=431)
    return block.lower()


def host_of_target(target: bytes, headers: Headers) -> Headers:
    """Return the headers of a checked request, with the authority of an absolute target as `host`.

    For other targets they are unchanged. RFC 9112 section 3.2.2: "the origin server MUST ignore the received Host
    header field (if any)".
    """
    authority = _authority(target)
    if authority is None:
        return headers
    return Headers([(b"host", authority), *((name, value) for name, value in headers if name != b"host")])


def _check_other_version(head: bytes, lowered: bytes) -> None:
    line = head[: head.find(b"\r")]
    if not _REQUEST_LINE.fullmatch(line):
        raise RemoteProtocolError("the request line is malformed")
    if not line.endswith(b"1.0"):
        raise RemoteProtocolError("only HTTP/1.0 and HTTP/1.1 are spoken here", status=505)
    if CODING in lowered:
        raise RemoteProtocolError("Transfer-Encoding in an HTTP/1.0 request")


def _check_other_target(head: bytes, lowered: bytes) -> None:
    line = head[: head.find(b"\r")]
    if not _REQUEST_LINE.fullmatch(line):
        raise RemoteProtocolError("the request line is malformed")
    method, target, _ = line.split(b" ")
    if target == b"*":
        if method != b"OPTIONS":
            raise RemoteProtocolError("the request target * is for OPTIONS alone")
    elif _authority(target) is None:
        raise RemoteProtocolError("the request target is neither a path nor a URL of http or https")


def _authority(target: bytes) -> bytes | None:
    """Return the authority of an absolute target of http or https, in lower case; None for any other target."""
    absolute = _ABSOLUTE.fullmatch(target.lower())
    if absolute is None or (absolute[2] and not is_ipv6_literal(absolute[2])):
        return None
    return absolute[1]


def _framing(lowered: bytes) -> Framing:
    at = lowered.find(LENGTH)
    if at == -1:
        if CODING not in lowered:
            return Framing.NONE
        _check_codings(lowered)
        return Framing.CHUNKED
    if CODING in lowered:
        raise RemoteProtocolError("Content-Length together with Transfer-Encoding")
    if lowered.find(LENGTH, at + 1) != -1:
        raise RemoteProtocolError("Content-Length is given twice")
    number = _NUMBER.match(lowered, at + len(LENGTH))
    if number is None:
        raise RemoteProtocolError("Content-Length is not a number", code="invalid_content_length")
    return Framing.LENGTH if number[1].strip(b"0") else Framing.NONE


def _check_codings(lowered: bytes) -> None:
    codings = [coding.strip(b" \t") for coding in b",".join(_CODINGS.findall(lowered)).split(b",")]
    if codings == [b"chunked"]:
        return
    if codings[-1] != b"chunked" or codings.count(b"chunked") > 1:
        raise RemoteProtocolError("Transfer-Encoding does not end in one chunked")
    raise RemoteProtocolError("Transfer-Encoding: only chunked is implemented", status=501)
