"""Optimized h2: it sends and refuses the same as bare h2."""

from contextlib import suppress
from itertools import product

import pytest
from h2.config import DummyLogger, H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.wire import h2_optimized
from tests.support.scenario_plan import some
from tests.wire.http2_pair import CONNECT, GET, POST

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
HEADS = [b"\x82\x86\x84\x41\x01a", b"\x83\x86\x84\x01\x01a", b"\x82\x86\x84\x41\x02ab", b"\xff"]
Fields = list[tuple[bytes, bytes]]
Step = tuple[int, int, int, bytes]
STEPS = st.one_of(
    st.tuples(st.just(1), st.sampled_from([0, 4, 5, 0x24, 0x0C]), st.integers(0, 9), st.sampled_from(HEADS)),
    st.tuples(st.just(0), st.sampled_from([0, 1, 8]), st.integers(0, 9), st.sampled_from([b"", b"\x01ab"])),
    st.tuples(st.just(3), st.just(0), st.integers(1, 9), st.just(bytes(4))),
    st.tuples(st.just(9), st.sampled_from([0, 4]), st.integers(1, 9), st.sampled_from(HEADS)),
    st.tuples(st.just(-1), st.integers(0, 9), st.integers(1, 9), st.just(b"")),  # we send something of `SAID`, or reset
    st.tuples(st.just(8), st.just(0), st.integers(0, 3), st.just(b"\0\0\x30\0")),  # windows grow
    st.tuples(st.just(4), st.just(0), st.just(0), st.sampled_from([b"\0\1\0\0\0\x40", b"\0\4\0\0\0\3"])),
)
OK, AGAIN = (b":status", b"200"), (b":status", b"100")
SECRET = NeverIndexedHeaderTuple(b"set-cookie", b"s")
SAID: list[tuple[Fields | bytes, bool]] = [
    ([OK], True),
    ([OK, (b"date", b"now"), SECRET], False),
    ([OK, (b"x", b"y" * 3000)], False),
    ([AGAIN], False),
    ([(b"x", b"trailer")], True),
    (b"", True),
    (b"ab", False),
    (b"ab", True),
    (b"x" * 20_000, True),
]


def served(kind: type[H2Connection]) -> H2Connection:
    off = {"validate_inbound_headers": False, "normalize_inbound_headers": False, "validate_outbound_headers": False}
    h2 = kind(H2Configuration(client_side=False, header_encoding=None, **off))  # type: ignore[arg-type] # booleans
    h2.initiate_connection()
    h2.receive_data(HELLO)
    return h2


def act(h2: H2Connection, step: Step) -> str:
    kind, flags, stream, payload = step
    try:
        if kind >= 0:
            head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
            return repr(h2.receive_data(head + payload))
        if flags == len(SAID):
            h2.reset_stream(stream)
        else:
            say(h2, stream, *SAID[flags])
    except (ProtocolError, KeyError) as error:
        return f"{type(error).__name__} {getattr(error, 'error_code', None)}"
    return ""


def say(h2: H2Connection, stream: int, what: Fields | bytes, end: bool) -> None:
    match h2, what:
        case h2_optimized.OptimizedH2Connection(), bytes():
            h2.send_data_fast(stream, what, end=end)
        case _, bytes():
            h2.send_data(stream, what, end_stream=end)
        case h2_optimized.OptimizedH2Connection(), _:
            h2.send_headers_fast(stream, what, end=end)
        case _:
            h2.send_headers(stream, what, end_stream=end)


@given(st.lists(STEPS, max_size=12))
def test_output_equals_bare_h2_for_random_frames(steps: list[Step]) -> None:
    lean, bare = served(h2_optimized.OptimizedH2Connection), served(H2Connection)
    for step in steps:
        assert act(lean, step) == act(bare, step)
        assert lean.data_to_send() == bare.data_to_send()
        for parity in (0, 1):
            walked = sum(stream.open and number % 2 == parity for number, stream in lean.streams.items())
            assert lean._open_streams(parity) == walked == bare._open_streams(parity)
        assert lean.streams.keys() == bare.streams.keys()
        assert lean.outbound_flow_control_window == bare.outbound_flow_control_window
        for mine, theirs in zip(lean.streams.values(), bare.streams.values(), strict=True):
            assert mine.outbound_flow_control_window == theirs.outbound_flow_control_window
            assert mine.state_machine.state is theirs.state_machine.state
        assert list(lean._closed_streams.items()) == list(bare._closed_streams.items())


FIELDS = st.lists(st.sampled_from([*GET, *POST, *CONNECT, (b"a", b"b" * 5000), (b"c", b"d")]), max_size=6)


@given(st.lists(st.tuples(FIELDS, st.sampled_from([None, 0, 60, 4096])), max_size=8))
def test_cached_header_blocks_decode_like_hpack(blocks: list[tuple[Fields, int | None]]) -> None:
    encoder, ours, theirs = Encoder(), h2_optimized.HeaderBlockDecoder(), Decoder()
    for fields, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        for data in [encoder.encode(fields)] * 2:  # sent again, after it has changed the table
            told: list[object] = []
            for decoder in (ours, theirs):
                with suppress(Exception):
                    told.append(list(decoder.decode(data, raw=True)))
            assert told[:1] == told[1:]
            assert ours.header_table.dynamic_entries == theirs.header_table.dynamic_entries


@pytest.mark.unmeasured
@pytest.mark.parametrize("first", some(range(len(SAID) + 1)))
def test_output_equals_bare_h2_for_every_order_of_events(first: int) -> None:
    asked = (1, 4, 1, HEADS[0])
    for order in product([first], *[range(len(SAID) + 1)] * 2):
        lean, bare = served(h2_optimized.OptimizedH2Connection), served(H2Connection)
        for step in (asked, *((-1, what, 1, b"") for what in order)):
            assert act(lean, step) == act(bare, step)
            assert lean.data_to_send() == bare.data_to_send()
            assert lean.outbound_flow_control_window == bare.outbound_flow_control_window
            assert lean.open_inbound_streams == bare.open_inbound_streams


def test_an_end_without_data_needs_no_window() -> None:
    steps = [(1, 4, 1, HEADS[0]), *((-1, what, 1, b"") for what in (1, 6)), (4, 0, 0, b"\0\4\0\0\0\1"), (-1, 5, 1, b"")]
    lean, bare = served(h2_optimized.OptimizedH2Connection), served(H2Connection)
    for step in steps:
        assert act(lean, step) == act(bare, step)
    assert lean.streams[1].outbound_flow_control_window == -1
    assert lean.data_to_send() == bare.data_to_send()


ANSWERS = st.lists(st.sampled_from([OK, (b"date", b"1"), (b"date", b"2"), (b"a", b"b" * 4000), SECRET]), max_size=5)


@given(st.lists(st.tuples(ANSWERS, st.sampled_from([None, 0, 60, 4096])), max_size=8))
def test_cached_header_blocks_encode_like_hpack(blocks: list[tuple[Fields, int | None]]) -> None:
    ours, theirs = h2_optimized.HeaderBlockEncoder(), Encoder()
    for fields, size in 2 * blocks:
        if size is not None:
            ours.header_table_size = theirs.header_table_size = size
        for _ in range(3):  # with the old and the new table
            assert ours.block(fields) == theirs.encode(fields)
            assert ours.header_table.dynamic_entries == theirs.header_table.dynamic_entries


def test_the_encoder_cache_is_limited() -> None:
    encoder = h2_optimized.HeaderBlockEncoder()
    lists = [[OK] * (number + 1) for number in range(h2_optimized.MAX_BLOCKS + 1)]
    first = [encoder.block(fields) for fields in lists]
    assert [encoder.block(fields) is block for fields, block in zip(lists, first, strict=True)] == [True] * 8 + [False]
    for many in (h2_optimized.MAX_BLOCK, h2_optimized.MAX_BLOCK + 1):
        fresh = h2_optimized.HeaderBlockEncoder()
        assert (fresh.block([OK] * many) is fresh.block([OK] * many)) is (many == h2_optimized.MAX_BLOCK)
    encoder.header_table_size = 100
    assert encoder.block([OK]) != first[0]  # the table size update comes first
    assert encoder.block([OK]) == first[0]


def test_a_client_sends_heads_through_h2() -> None:
    h2 = h2_optimized.OptimizedH2Connection(H2Configuration(client_side=True, header_encoding=None))
    h2.initiate_connection()
    h2.clear_outbound_data_buffer()
    h2.send_headers_fast(1, [*GET], end=True)
    assert h2.data_to_send()[3:5] == b"\x01\x05"


def test_the_decoder_cache_is_limited() -> None:
    decoder = h2_optimized.HeaderBlockDecoder()
    whole = [bytes([0x82] * (number + 1)) for number in range(h2_optimized.MAX_BLOCKS + 1)]
    first = [decoder.decode(data) for data in whole]
    assert [decoder.decode(data) is fields for data, fields in zip(whole, first, strict=True)] == [True] * 8 + [False]
    longest = b"\x00\x01a\x7f\x7c" + bytes(h2_optimized.MAX_BLOCK - 5)
    for data in (b"\x82" * h2_optimized.MAX_BLOCK_FIELDS, longest):
        fresh = h2_optimized.HeaderBlockDecoder()
        assert fresh.decode(data) is fresh.decode(data)
    for data in (b"\x82" * (h2_optimized.MAX_BLOCK_FIELDS + 1), b"\x00\x01a\x7f\x83\x01" + bytes(258)):
        fresh = h2_optimized.HeaderBlockDecoder()
        assert fresh.decode(data) is not fresh.decode(data)


def test_logged_frames_are_short() -> None:
    seen: list[str] = []

    class Logger(DummyLogger):
        def trace(self, _: str, *said: object) -> None:
            seen.extend(one for one in said if isinstance(one, str))

    h2 = served(h2_optimized.OptimizedH2Connection)
    h2.config.logger = Logger()
    act(h2, (1, 4, 1, HEADS[0]))
    act(h2, (0, 1, 1, b"a"))
    assert seen == ["HEADERS", "DATA"]
