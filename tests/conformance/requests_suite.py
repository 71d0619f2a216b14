"""Suite of gunicorn's request corpus against our server, in memory.

A valid request must be read as gunicorn reads it, and an invalid one must not be read to its end; the exceptions are in
`corpus_exceptions.tsv`.
"""

from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.conformance.corpus import Case, Expected, load, with_host
from tests.conformance.external_tools import sdist
from tests.conformance.result import Result
from tests.support.tables import read_table

GUNICORN = "gunicorn==27.0.1"  # its files, and so the tables here, change between releases
EVERY = 400  # splits of one case at most


def _exceptions(kind: str) -> dict[str, str]:
    """Return the cases of `corpus_exceptions.tsv` of a kind, with the reason.

    By default gunicorn drops fields with a `_` in their name: valid/040_compat is valid/040 without that.
    """
    rows = read_table("tests/conformance/corpus_exceptions.tsv")
    return {row["case"]: row["reason"] for row in rows if row["kind"] == kind}


NOT_APPLICABLE, DIFFERENT = _exceptions("not applicable"), _exceptions("different")


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
                case events.RequestHead(method=method, target=target, http_version=version, headers=headers):
                    requests.append(Expected(method, target, version, headers, (), b""))
                    whole = False
                case events.RequestData(data=data):
                    requests[-1] = evolve(requests[-1], body=requests[-1].body + data)
                case events.RequestEnd(stream=stream, trailers=trailers):
                    requests[-1] = evolve(requests[-1], trailers=trailers)
                    whole = True
                    connection.send(events.ResponseHead(stream, 200, events.Headers(((b"content-length", b"2"),))))
                    connection.send(events.ResponseData(stream, b"ok"))
                    connection.send(events.ResponseEnd(stream))
                case _:
                    assert isinstance(event, events.StreamReset)

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
