"""permessage-deflate: negotiation (RFC 7692 section 7.1), and limits of inflated messages."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import CloseReason, FrameDecoder, Opcode, RsvBits

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire import websocket_deflate
from svc_proto.wire.websocket_deflate import (
    OFFER,
    DeflateParameters,
    Deflater,
    InflateGuard,
    accept_extension_offer,
    parse_extension_response,
)


@pytest.mark.parametrize(
    ("offers", "answer", "agreed"),
    [
        (
            [b"permessage-deflate; server_max_window_bits=15"],
            b"permessage-deflate; server_max_window_bits=12",
            DeflateParameters(server_max_window_bits=12),
        ),
        (
            [OFFER + b"; server_max_window_bits=12"],
            b"permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
            DeflateParameters(server_max_window_bits=12, client_max_window_bits=12),
        ),
        (
            [b'Permessage-Deflate ; client_max_window_bits = "10"; server_max_window_bits=9'],
            b"permessage-deflate; server_max_window_bits=9; client_max_window_bits=10",
            DeflateParameters(server_max_window_bits=9, client_max_window_bits=10),
        ),
        (
            [
                b"x, permessage-deflate; unknown",
                b"permessage-deflate; server_max_window_bits=13;server_no_context_takeover;client_no_context_takeover",
            ],
            b"permessage-deflate; server_max_window_bits=12; server_no_context_takeover; client_no_context_takeover",
            DeflateParameters(
                server_max_window_bits=12, server_no_context_takeover=True, client_no_context_takeover=True
            ),
        ),
    ],
)
def test_offers_that_are_taken(offers: list[bytes], answer: bytes, agreed: DeflateParameters) -> None:
    assert accept_extension_offer(offers) == (agreed, answer)
    assert parse_extension_response([answer]) == agreed


@pytest.mark.parametrize(
    ("offer", "answer"),
    [
        (b"permessage-deflate", b"permessage-deflate"),
        (b"permessage-deflate; client_max_window_bits", b"permessage-deflate; client_max_window_bits=12"),
        (b"permessage-deflate; server_no_context_takeover", b"permessage-deflate; server_no_context_takeover"),
    ],
)
def test_the_window_of_the_server_is_named_only_if_offered(offer: bytes, answer: bytes) -> None:
    accepted = accept_extension_offer([offer])
    assert accepted is not None
    agreed, text = accepted
    assert text == answer
    assert agreed.server_max_window_bits == 12  # our compressor uses no larger one in any case
    assert parse_extension_response([text]) == evolve(agreed, server_max_window_bits=15)


@pytest.mark.parametrize(
    "offer",
    [
        *(b"", b"permessage-bzip2", b"permessage-deflate; x=1", b"permessage-deflate; server_max_window_bits"),
        *(b"permessage-deflate; server_max_window_bits=7", b"permessage-deflate; server_max_window_bits=16"),
        *(b"permessage-deflate; server_max_window_bits=010", b"permessage-deflate; server_max_window_bits=\xb2"),
        *(b"permessage-deflate; client_max_window_bits=", b"permessage-deflate; client_max_window_bits=x"),
        b"permessage-deflate; server_no_context_takeover=1",
        *(b"permessage-deflate; client_no_context_takeover; client_no_context_takeover", b"permessage-deflate;"),
    ],
)
def test_offers_that_are_declined(offer: bytes) -> None:
    expected = offer == b"permessage-deflate;"  # an excess semicolon is tolerated
    assert (accept_extension_offer([offer]) is not None) is expected


@pytest.mark.parametrize(
    "answer",
    [
        *(b"permessage-bzip2", b"permessage-deflate; x=1", b"permessage-deflate; client_max_window_bits"),
        b"permessage-deflate, permessage-deflate",
    ],
)
def test_answers_that_are_refused(answer: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="Sec-WebSocket-Extensions"):
        parse_extension_response([answer])


def test_no_answer() -> None:
    assert parse_extension_response([]) is None


@given(st.lists(st.binary(max_size=40) | st.binary(max_size=20).map(b"permessage-deflate;".__add__)))
def test_nothing_but_protocol_errors_escape(values: list[bytes]) -> None:
    accept_extension_offer(values)
    try:
        parse_extension_response(values)
    except RemoteProtocolError:
        return


def judged(*frames: tuple[int, bytes], agreed: DeflateParameters | None = None, most: int = 10) -> object:
    """Pass frames (first byte, payload) to an `InflateGuard`, each whole; return its refusal, or its last result."""
    guard, proto = InflateGuard(most, agreed), FrameDecoder(client=False)
    said: object = None
    for first, payload in frames:
        opcode, rsv = Opcode(first & 15), RsvBits(bool(first & 0x40), False, False)
        said = guard.frame_inbound_header(proto, opcode, rsv, len(payload))
        if not isinstance(said, CloseReason):
            said = guard.frame_inbound_payload_data(proto, payload)
        if not isinstance(said, CloseReason):
            said = guard.frame_inbound_complete(proto, bool(first & 0x80))
        if isinstance(said, CloseReason):
            break
    return said


def packed(size: int) -> tuple[int, bytes]:
    return 0xC1, Deflater(15, alone=False).pack(b"x" * size)


BIG = CloseReason.MESSAGE_TOO_BIG
AGREED = DeflateParameters()
ENDED = b"\x03\x00"  # nothing, in a final block


@pytest.mark.parametrize(
    ("largest", "one_more", "refusal", "agreed"),
    [
        ([(0x81, b"x" * 10)], [(0x81, b"x" * 11)], BIG, None),
        ([(0x01, b"x" * 9), (0x80, b"x")], [(0x01, b"x" * 9), (0x80, b"xx")], BIG, None),
        ([packed(10)], [packed(11)], BIG, AGREED),
        ([(0x01, b""), *[(0x00, b"")] * 2, (0x80, b"")], [(0x01, b""), *[(0x00, b"")] * 3], BIG, None),
        ([(0xC1, ENDED + b"x")], [(0xC1, ENDED + b"xx")], CloseReason.INVALID_FRAME_PAYLOAD_DATA, AGREED),
    ],
    ids=["a frame", "frames", "inflated", "fragments", "behind the end"],
)
def test_the_limits_reached_exactly_and_passed_by_one(
    largest: list[tuple[int, bytes]],
    one_more: list[tuple[int, bytes]],
    refusal: CloseReason,
    agreed: DeflateParameters | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limits apply to each message anew."""
    monkeypatch.setattr(websocket_deflate, "MAX_FRAGMENTS", 3)
    assert not isinstance(judged(*largest, *largest, agreed=agreed), CloseReason)
    for before in ([], largest):
        assert judged(*before, *one_more, agreed=agreed) is refusal


@pytest.mark.parametrize(("client", "bits"), [(False, 9), (True, 15)])
def test_memory_is_that_of_the_window_of_the_peer(client: bool, bits: int) -> None:
    guard = InflateGuard(10, DeflateParameters(server_max_window_bits=15, client_max_window_bits=8))
    assert guard.buffered_bytes == 0
    proto = FrameDecoder(client=client)
    guard.frame_inbound_header(proto, Opcode.TEXT, RsvBits(True, False, False), 1)
    guard.frame_inbound_payload_data(proto, packed(10)[1])
    assert guard.buffered_bytes == websocket_deflate.INFLATER + (1 << bits)
    guard.release()
    assert guard.buffered_bytes == 0


def test_the_hooks_leave_negotiation_alone() -> None:
    extension = InflateGuard(1, None)
    assert (extension.enabled(), extension.offer()) == (True, False)


@pytest.mark.parametrize("alone", [False, True])
def test_only_a_context_taken_over_shortens_a_repetition(alone: bool) -> None:
    deflater = Deflater(15, alone=alone)
    message = bytes(range(256))
    first, second = deflater.pack(message), deflater.pack(message)
    assert (second == first) is alone
    assert (len(second) < len(first) // 4) is not alone
