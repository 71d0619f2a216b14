"""Suites of gunicorn's request corpus against our server: in memory, and over a socket.

In memory, a valid request must be read as gunicorn reads it, and an invalid one must not be read to its end. Over a
socket, statuses and echoed bodies are judged. The tables below name the exceptions.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamReset,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.conformance.corpus import Case, Expected, load, with_host
from tests.conformance.external_tools import echo_server, sdist
from tests.conformance.result import Result

GUNICORN = "gunicorn==27.0.1"  # its files, and so the tables here, change between releases
WITHIN = 5.0  # s for the answer of a server on this machine
EVERY = 400  # splits of one case at most
BROKEN = (400, 408, 414, 431, 501, 505)  # statuses of requests that are refused before any handler
STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [^\r\n]+\r\n")
LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE)

PROXY = "the PROXY protocol, which this server does not speak"
FIELD = "a limit on one field; here the head as a whole has one"
OPTION = "an option of gunicorn's that makes it read what it refuses, or refuse what is allowed"
NOT_APPLICABLE = {
    **{f"{kind}/pp_0{n}": PROXY for kind, last in (("valid", 5), ("invalid", 3)) for n in range(1, last + 1)},
    "invalid/010": FIELD,
    "invalid/012": FIELD,
    "invalid/017": FIELD,
    "invalid/limit_header_default_01": FIELD,
    "invalid/019": OPTION,
    "invalid/040": OPTION,
    "invalid/chunked_07": OPTION,
    "valid/028": OPTION,
    # by default gunicorn drops fields with a `_` in their name; valid/040_compat is the same without
    "valid/040": OPTION,
    "valid/031compat": OPTION,
    "valid/compat_obs_fold": OPTION,
    "valid/compat_obs_fold_huge": OPTION,
}

CODING = "501: only the coding `chunked` is implemented (RFC 9112 section 6.1)"
CONNECT = "501: CONNECT is for proxies (RFC 9110 section 9.3.6)"
DIFFERENT = {
    "valid/022": "closed after the first request: HTTP/1.0 connections are not kept (RFC 9112 section 9.3 allows it)",
    "valid/025": CODING,
    "valid/025_line": CODING,
    "valid/029": CODING,
    "valid/030": CODING,
    "valid/rfc9112_smuggle_gzip_chunked_01": CODING,
    "valid/rfc9112_smuggle_te_identity_chunked_01": CODING,
    "valid/rfc9112_target_authority_connect_01": CONNECT,
    "valid/rfc9112_target_authority_ipv6_01": CONNECT,
    "valid/rfc9112_target_absolute_userinfo_01": "400: user information in a URL is refused (RFC 9110 section 4.2.4)",
    "invalid/003c": "served: `-bl` is a method by its syntax (RFC 9110 section 5.6.2); no route takes it",
    "invalid/041": "served: Content-Type twice; bodies are read by their route, not by their type",
}


@frozen
class Heard:
    """A server's reading of a case: its requests, and the status of the refusal if there was one."""

    requests: tuple[Expected, ...]
    refused: int | None
    whole: bool  # the last request was complete, or there was none


def corpus() -> Path:
    return sdist(GUNICORN) / "tests" / "requests"


def in_memory(folder: Path) -> Result:
    """Pass the applicable cases to the wire layer, whole and cut in pieces; the outcome must not depend on the cuts."""
    result = Result("requests, in memory")
    for case in load(folder):
        if case.name in NOT_APPLICABLE:
            result.leave_out(case.name, NOT_APPLICABLE[case.name])
            continue
        limits = _limits(case)
        data = with_host(case.data)
        heard = _parse_pieces([data], limits)
        problem = _judge(case, heard)
        for pieces in _cuts(data):
            if problem is None and _parse_pieces(pieces, limits) != heard:
                problem = f"the outcome depends on how it is cut: {len(pieces)} pieces, the first of {len(pieces[0])}"
        result.note(case.name, problem, DIFFERENT.get(case.name))
    return result


def over_socket(runtime: str) -> Result:
    """Send the cases that need no limits of their own to the echo.

    A valid request must be answered, with its body; one whose target has a fragment may be refused. The last answer to
    an invalid one, if there is any, must be a refusal.
    """
    result = Result(f"requests, over a socket on {runtime}")
    with echo_server(runtime) as port:
        for case in load(corpus()):
            if case.name in NOT_APPLICABLE:
                result.leave_out(case.name, NOT_APPLICABLE[case.name])
            elif _limits(case) != DEFAULT_LIMITS:
                result.leave_out(case.name, "needs a limit of its own; run in memory")
            elif case.name == "valid/099":
                result.leave_out(case.name, "its body breaks off, which no server can answer; run in memory")
            else:
                result.note(case.name, _send_case(case, port), DIFFERENT.get(case.name))
    return result


# --- in memory ----------------------------------------------------------------------------------------------------


def _limits(case: Case) -> Limits:
    """Return our limits for a case: gunicorn's limit of fields, or for three cases a limit of the head's size."""
    if case.name == "invalid/006":
        return Limits(max_head=4094)
    if case.name in ("invalid/007", "invalid/008"):
        return Limits(max_head=8190)
    fields = case.settings.get("limit_request_fields")
    return Limits(max_fields=fields) if fields else DEFAULT_LIMITS


def _cuts(data: bytes) -> Iterator[list[bytes]]:
    yield [bytes([byte]) for byte in data]
    yield data.splitlines(keepends=True)
    for at in range(1, len(data), max(1, len(data) // EVERY)):
        yield [data[:at], data[at:]]


def _parse_pieces(pieces: list[bytes], limits: Limits) -> Heard:
    connection = Http1Connection(Role.SERVER, limits=limits, entropy=bytes)
    requests: list[Expected] = []
    refused: int | None = None
    whole = True

    def listen() -> None:
        nonlocal whole
        while (event := connection.next_event()) is not None:
            match event:
                case RequestHead(method=method, target=target, http_version=version, headers=headers):
                    requests.append(Expected(method, target, version, headers, (), b""))
                    whole = False
                case RequestData(data=data):
                    requests[-1] = evolve(requests[-1], body=requests[-1].body + data)
                case RequestEnd(stream=stream, trailers=trailers):
                    requests[-1] = evolve(requests[-1], trailers=trailers)
                    whole = True
                    connection.send(ResponseHead(stream, 200, Headers(((b"content-length", b"2"),))))
                    connection.send(ResponseData(stream, b"ok"))
                    connection.send(ResponseEnd(stream))
                case _:
                    assert isinstance(event, StreamReset)

    try:
        for piece in pieces:
            connection.receive_data(piece)
            listen()
        connection.receive_eof()
        listen()
    except RemoteProtocolError as error:
        refused = error.status
    return Heard(tuple(requests), refused, whole and refused is None)


def _judge(case: Case, heard: Heard) -> str | None:
    if case.expected is None:
        if heard.whole and heard.requests:
            return f"served, but gunicorn says {case.error}"
        return None
    if heard.refused is not None:
        return f"refused with {heard.refused}"
    seen = tuple(_without_host(request) for request in heard.requests)
    wanted = tuple(_without_host(request) for request in case.expected)
    return None if seen == wanted else f"read as {seen}, but gunicorn reads {wanted}"


def _without_host(request: Expected) -> Expected:
    """Return the request without `Host`, which may have been added or come from an absolute target."""
    return evolve(request, headers=tuple(field for field in request.headers if field[0] != b"host"))


# --- over a socket ------------------------------------------------------------------------------------------------


def _send_case(case: Case, port: int) -> str | None:
    answer = _exchange(with_host(case.data), port)
    if case.expected is None:
        statuses = [status for status, _ in _answers(answer, ["GET"] * 20)]
        if statuses and statuses[-1] not in BROKEN:
            return f"answered {statuses}, but gunicorn says {case.error}"
        return None
    answers = _answers(answer, [request.method for request in case.expected])
    statuses = [status for status, _ in answers]
    if len(answers) != len(case.expected) or any(status in BROKEN for status in statuses):
        if any("#" in request.target for request in case.expected) and statuses[-1] == 400:
            return None  # RFC 9112 section 3.2: a target has no fragment; the parser passes it on, the route refuses it
        return f"answered {statuses} to {len(case.expected)} requests"
    for request, (_, body) in zip(case.expected, answers, strict=True):
        if request.body and body != request.body:
            return f"the body came back as {body[:80]!r}"
    return None


def _exchange(data: bytes, port: int) -> bytes:
    """Send data and half-close; return all that the server sends up to its close."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            while more := sock.recv(1 << 16):
                answer += more
        except ConnectionError:
            pass  # the server has closed
    return answer


def _answers(data: bytes, methods: list[str]) -> list[tuple[int, bytes]]:
    """Return status and body of the response to each method; data that is no such response is added with status 0."""
    found: list[tuple[int, bytes]] = []
    for method in methods:
        status = STATUS.match(data)
        end = data.find(b"\r\n\r\n") + 4
        if status is None or end < 4:
            break
        length = LENGTH.search(data, 0, end)
        size = int(length[1]) if length is not None and method != "HEAD" else 0
        found.append((int(status[1]), data[end : end + size]))
        data = data[end + size :]
    return found if not data else [*found, (0, data)]
