"""Responses in h11's form: with a reason phrase, and without fields that they must not have."""

from http import HTTPStatus

import h11

from svc_proto.basics.errors import LocalProtocolError

__all__ = ["REASONS", "DelegatedBytes", "build_informational", "build_response"]

REASONS = {status.value: status.phrase.encode("ascii") for status in HTTPStatus}
CLOSE = (b"connection", b"close")


class DelegatedBytes:
    """Placeholder for a number of bytes, which h11 counts but never receives."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def build_response(status: int, fields: list[tuple[bytes, bytes]], *, closing: bool) -> h11.Response:
    """Return a final response; `closing` marks it as the connection's last one.

    Raise `LocalProtocolError` for a malformed status or field.
    """
    if closing and CLOSE not in fields:
        fields.append(CLOSE)
    if status == HTTPStatus.NO_CONTENT:
        fields = [field for field in fields if field[0].lower() != b"content-length"]  # RFC 9110 section 8.6
    try:
        return h11.Response(status_code=status, headers=fields, reason=REASONS.get(status, b"Unknown"))
    except h11.LocalProtocolError:
        raise LocalProtocolError("ResponseHead: a header or the status is malformed") from None


def build_informational(status: int, fields: list[tuple[bytes, bytes]]) -> h11.InformationalResponse:
    """Return an interim response. Raises `LocalProtocolError` for a malformed status or field."""
    try:
        return h11.InformationalResponse(status_code=status, headers=fields, reason=REASONS.get(status, b"Unknown"))
    except h11.LocalProtocolError:
        raise LocalProtocolError("a header or the status of an interim response is malformed") from None
