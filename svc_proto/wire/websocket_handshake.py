"""Opening handshake of a WebSocket over HTTP/1.1 (RFC 6455 section 4), as functions on headers."""

import base64
import binascii
import hashlib

from svc_proto.basics.entropy import Entropy, secrets_equal
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.events import AcceptWebSocket, Headers, RequestHead
from svc_proto.wire.websocket_deflate import OFFER, DeflateParameters, parse_extension_response

__all__ = [
    "EXTENSIONS",
    "WEBSOCKET_VERSION",
    "build_accept_headers",
    "check_acceptance",
    "handshake_problem",
    "new_key",
    "is_handshake",
    "parse_acceptance",
    "build_request_headers",
    "build_subprotocol_field",
]

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3
WEBSOCKET_VERSION = (b"sec-websocket-version", b"13")  # section 4.4: in a handshake request, and in a 426
KEY_SIZE = 16  # bytes, RFC 6455 section 4.1
EXTENSIONS = b"sec-websocket-extensions"
PROTOCOL = b"sec-websocket-protocol"
UPGRADE_FIELDS = ((b"upgrade", b"websocket"), (b"connection", b"Upgrade"))

HandshakeProblem = tuple[int, str, tuple[tuple[bytes, bytes], ...]]


def handshake_problem(head: RequestHead) -> HandshakeProblem | None:
    """Return the reason to refuse a WebSocket handshake: status, text and extra headers of the response.

    None for a correct handshake, and for a request that is none. By RFC 9110 section 7.8 an `Upgrade` in an HTTP/1.0
    request is ignored; one to `websocket` is a handshake that we refuse by RFC 6455 section 4.2.1.
    """
    headers = head.headers
    if b"websocket" not in headers.tokens(b"upgrade"):
        return None
    if head.http_version == "1.0":
        return 400, "a WebSocket handshake needs HTTP/1.1", ()
    if head.method != "GET":
        return 400, "a WebSocket handshake must be a GET", ()
    if b"upgrade" not in headers.tokens(b"connection"):
        return 400, "Connection: the upgrade option is missing", ()
    if headers.get(b"content-length", b"0") != b"0" or headers.get(b"transfer-encoding") is not None:
        return 400, "a WebSocket handshake has no body", ()
    versions = headers.all(WEBSOCKET_VERSION[0])
    if not versions:
        return 400, "Sec-WebSocket-Version is missing", ()
    if versions != [WEBSOCKET_VERSION[1]]:
        return 426, "Sec-WebSocket-Version: only 13 is spoken here", (WEBSOCKET_VERSION, *UPGRADE_FIELDS)
    keys = headers.all(b"sec-websocket-key")
    if len(keys) != 1 or not _is_key(keys[0]):
        return 400, "Sec-WebSocket-Key must be 16 bytes in base64", ()
    return None


def is_handshake(head: RequestHead) -> bool:
    """Report whether a request is a correct handshake (RFC 6455 section 4.2.1)."""
    return b"websocket" in head.headers.tokens(b"upgrade") and handshake_problem(head) is None


def build_accept_headers(
    head: RequestHead, event: AcceptWebSocket, extensions: bytes | None
) -> list[tuple[bytes, bytes]]:
    """Server: return the fields of the 101. Raises `LocalProtocolError` for a subprotocol that was not offered."""
    (key,) = head.headers.all(b"sec-websocket-key")
    fields = [*UPGRADE_FIELDS, (b"sec-websocket-accept", _accept_token(key)), *build_subprotocol_field(head, event)]
    if extensions is not None:
        fields.append((EXTENSIONS, extensions))
    fields.extend(event.headers)
    return fields


def build_subprotocol_field(head: RequestHead, event: AcceptWebSocket) -> list[tuple[bytes, bytes]]:
    """Server: return a list with the field of the chosen subprotocol, empty if none is chosen.

    Raise `LocalProtocolError` if it was not offered.
    """
    if event.subprotocol is None:
        return []
    chosen = event.subprotocol.encode("utf-8")
    if chosen not in _listed(head.headers, PROTOCOL):
        raise LocalProtocolError("the subprotocol was not offered")
    return [(PROTOCOL, chosen)]


def new_key(entropy: Entropy) -> bytes:
    """Client: return a fresh `Sec-WebSocket-Key`."""
    return base64.b64encode(entropy(KEY_SIZE))


def build_request_headers(key: bytes, *, deflate: bool) -> list[tuple[bytes, bytes]]:
    """Client: return the fields that make a GET a handshake."""
    fields = [*UPGRADE_FIELDS, (b"sec-websocket-key", key), WEBSOCKET_VERSION]
    if deflate:
        fields.append((EXTENSIONS, OFFER))
    return fields


def check_acceptance(
    asked: Headers, key: bytes, answer: Headers, *, deflate: bool
) -> tuple[str | None, DeflateParameters | None]:
    """Client: return the subprotocol and the compression of a 101, each None if there is none.

    Raise `RemoteProtocolError` if the 101 does not switch to WebSocket, does not match our key, or chooses what was not
    offered.
    """
    if answer.tokens(b"upgrade") != [b"websocket"] or b"upgrade" not in answer.tokens(b"connection"):
        raise RemoteProtocolError("the 101 does not switch to websocket")
    tokens = answer.all(b"sec-websocket-accept")
    if len(tokens) != 1 or not secrets_equal(tokens[0].decode("latin-1"), _accept_token(key).decode("ascii")):
        raise RemoteProtocolError("Sec-WebSocket-Accept does not match the key")
    return parse_acceptance(asked, answer, deflate=deflate)


def parse_acceptance(asked: Headers, answer: Headers, *, deflate: bool) -> tuple[str | None, DeflateParameters | None]:
    """Client: return the subprotocol and the compression of an open WebSocket, each None if there is none.

    Raise `RemoteProtocolError` if they were not offered or are malformed.
    """
    chosen = answer.all(PROTOCOL)
    if chosen and (len(chosen) != 1 or chosen[0] not in _listed(asked, PROTOCOL)):
        raise RemoteProtocolError("Sec-WebSocket-Protocol was not offered")
    extensions = answer.all(EXTENSIONS)
    if extensions and not deflate:
        raise RemoteProtocolError("Sec-WebSocket-Extensions: none was offered")
    return (chosen[0].decode("latin-1") if chosen else None), parse_extension_response(extensions)


def _accept_token(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + GUID, usedforsecurity=False).digest())


def _is_key(value: bytes) -> bool:
    try:
        return len(base64.b64decode(value, validate=True)) == KEY_SIZE
    except binascii.Error:
        return False


def _listed(headers: Headers, name: bytes) -> list[bytes]:
    """Return the members of a list field; unlike `Headers.tokens` this keeps case, which matters in subprotocols."""
    return [part.strip() for value in headers.all(name) for part in value.split(b",")]
