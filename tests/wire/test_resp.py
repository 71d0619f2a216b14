"""RESP3: values whole, byte by byte and with trailing data; refusals; and written values that are read again."""

from math import inf, isnan

import pytest

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.resp import MAX_DEPTH, MAX_LINE, Push, RespError, RespReader, encode_command, encode_reply

VALUES: list[tuple[bytes, object]] = [
    (b"+OK\r\n", b"OK"),
    (b"+\r\n", b""),
    (b"$5\r\nhe\r\no\r\n", b"he\r\no"),
    (b"$0\r\n\r\n", b""),
    (b"=7\r\ntxt:yes\r\n", b"yes"),
    (b":42\r\n", 42),
    (b":-9223372036854775808\r\n", -(2**63)),
    (b":+7\r\n", 7),
    (b"(3492890328409238509324850943850943825024385\r\n", 3492890328409238509324850943850943825024385),
    (b",1.25\r\n", 1.25),
    (b",10\r\n", 10.0),
    (b",-1e-3\r\n", -0.001),
    (b",inf\r\n", inf),
    (b",-inf\r\n", -inf),
    (b"#t\r\n", True),
    (b"#f\r\n", False),
    (b"_\r\n", None),
    (b"$-1\r\n", None),
    (b"*-1\r\n", None),
    (b"*0\r\n", []),
    (b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", [1, [b"a"]]),
    (b"~2\r\n+a\r\n+b\r\n", [b"a", b"b"]),
    (b"%0\r\n", {}),
    (b"%2\r\n+a\r\n:1\r\n:2\r\n*1\r\n_\r\n", {b"a": 1, 2: [None]}),
    (b">2\r\n+message\r\n$1\r\nx\r\n", Push([b"message", b"x"])),
    (b">0\r\n", Push()),
    (b"-ERR wrong number of arguments\r\n", RespError("ERR", "wrong number of arguments")),
    (b"-NOAUTH\r\n", RespError("NOAUTH", "")),
    (b"!10\r\nSYNTAX bad\r\n", RespError("SYNTAX", "bad")),
    (b"|1\r\n+ttl\r\n:3600\r\n:7\r\n", 7),
    (b"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", [1, 2]),
    (b"|0\r\n:7\r\n", 7),
]


@pytest.mark.parametrize(("data", "value"), VALUES, ids=[repr(data)[:40] for data, _ in VALUES])
def test_values_whole_byte_by_byte_with_trailing_data_and_written_again(data: bytes, value: object) -> None:
    reader = RespReader()
    assert reader.feed(data) == [value]
    assert reader.is_idle
    slow = RespReader()
    assert fed(slow, data[:-1], 1) == []
    assert slow.feed(data[-1:]) == [value]
    assert slow.is_idle
    ahead = RespReader()
    assert ahead.feed(data + data + data[:-1]) == [value, value]
    assert not ahead.is_idle
    assert ahead.feed(data[-1:]) == [value]
    (only,) = RespReader().feed(data)
    assert type(only) is type(value)
    if data[:1] != b"(":  # a server sends no integer of more than 64 bits
        assert RespReader().feed(encode_reply(value)) == [value]


def test_nan_is_read() -> None:
    (value,) = RespReader().feed(b",nan\r\n")
    assert isinstance(value, float)
    assert isnan(value)


@pytest.mark.parametrize(
    "data",
    [
        *(b"\r\n", b"?1\r\n"),
        b"PING\r\n",  # an inline command
        *(b":\r\n", b":1.5\r\n", b": 1\r\n", b":12345678901234567890\r\n", b"(\r\n", b"(1x\r\n", b",\r\n", b",1_0\r\n"),
        *(b",0x1p3\r\n", b"#1\r\n", b"_x\r\n", b"$\r\n", b"$-2\r\n", b"$+1\r\n"),
        b"$?\r\n",  # a streamed string
        *(b"*?\r\n", b"%-1\r\n", b"~-1\r\n", b"$1\r\nab\r\n", b"$1\r\na\rb", b"=2\r\nab\r\n", b"=4\r\ntxt,\r\n"),
        *(b"%1\r\n*0\r\n:1\r\n", b"%1\r\n%0\r\n:1\r\n", b"*1\r\n>1\r\n:1\r\n", b"*" + b"1" * 21 + b"\r\n"),
        *(b"*1\r\n" * (MAX_DEPTH + 1), b"|1\r\n" * (MAX_DEPTH + 1)),
    ],
)
def test_invalid_resp_is_a_remote_error(data: bytes) -> None:
    for step in (len(data), 1):
        with pytest.raises(RemoteProtocolError):
            fed(RespReader(), data, step)


def fed(reader: RespReader, data: bytes, step: int) -> list[object]:
    return [value for at in range(0, len(data), step) for value in reader.feed(data[at : at + step])]


def test_the_depth_of_collections_is_limited() -> None:
    reader = RespReader()
    (value,) = reader.feed(b"*1\r\n" * MAX_DEPTH + b":1\r\n")
    for _ in range(MAX_DEPTH):
        assert isinstance(value, list)
        (value,) = value
    assert value == 1


def test_the_size_of_a_value_is_limited() -> None:
    largest = RespReader(max_value=100)
    assert largest.feed(b"+" + b"x" * 99) == []
    assert largest.feed(b"\r\n$100\r\n") == [b"x" * 99]
    for data in (
        *(b"$101\r\n", b"$90\r\n" + b"x" * 90 + b"\r\n", b"*9\r\n" + b":1\r\n" * 8, b"+" + b"x" * 100),
        b"+" + b"x" * 101 + b"\r\n",
    ):
        with pytest.raises(RemoteProtocolError, match="too long"):
            RespReader(max_value=100).feed(data)
    reader = RespReader(max_value=100)
    for _ in range(50):  # consecutive values may exceed it
        assert reader.feed(b"+" + b"y" * 60 + b"\r\n") == [b"y" * 60]


def test_announced_sizes_allocate_nothing() -> None:
    reader = RespReader()
    assert reader.feed(b"*%020d\r\n:1\r\n" % 4_294_967_295) == []
    assert not reader.is_idle


def test_the_length_of_a_line_is_limited() -> None:
    assert RespReader().feed(b"+" + b"x" * (MAX_LINE - 1) + b"\r\n") == [b"x" * (MAX_LINE - 1)]
    for data in (b"+" + b"x" * MAX_LINE + b"\r\n", b"+" + b"x" * MAX_LINE):
        with pytest.raises(RemoteProtocolError, match="a line is too long"):
            RespReader().feed(data)
    with pytest.raises(RemoteProtocolError, match="an empty line"):
        RespReader().feed(b"\r\n" + b"x" * MAX_LINE)


def test_a_command_is_an_array_of_strings() -> None:
    assert encode_command("SET", b"k\xff", 7) == b"*3\r\n$3\r\nSET\r\n$2\r\nk\xff\r\n$1\r\n7\r\n"
    assert RespReader().feed(encode_command("SET", b"k\xff", 7)) == [[b"SET", b"k\xff", b"7"]]
    assert RespReader().feed(encode_command("ECHO", "ä")) == [[b"ECHO", "ä".encode()]]


@pytest.mark.parametrize(("value", "text"), [(None, b"_"), (True, b"#t"), (False, b"#f"), (7, b":7"), (0.5, b",0.5")])
def test_values_as_a_server_sends_them(value: object, text: bytes) -> None:
    assert encode_reply(value) == text + b"\r\n"
    assert RespReader().feed(text + b"\r\n") == [value]


@pytest.mark.parametrize("value", [object(), "a\nb", "a\rb", RespError("ERR", "a\r\nb"), {1, 2}])
def test_unsupported_values_are_local_errors(value: object) -> None:
    with pytest.raises(LocalProtocolError):
        encode_reply(value)
