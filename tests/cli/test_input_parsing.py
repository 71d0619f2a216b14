import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.cli.errors import CliError
from svc_proto.cli.input_parsing import looks_like_invite, parse_pairing_code, parse_relay_url, strip_controls


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("\x1b[200~Q7M2ZK\x1b[201~", "Q7M2ZK"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", ""),
        ("\x1bP1$r\x1b\\x", "x"),
        ("a\x1bOPb\x1b(Bc\x1b7d", "abcd"),
        ("\x9b31mx\x9dt\x9cy", "xy"),
        ("a\x00b\r\nc\x7fd\x85e", "abcde"),
        ("end\x1b", "end"),
        ("end\x1b[", "end"),
    ],
)
def test_escape_sequences(text: str, kept: str) -> None:
    assert strip_controls(text) == kept


@given(st.text(alphabet=st.sampled_from("Q7\x1b[]~;\x07\\O\x9b\n 0m"), max_size=40))
def test_control_characters_are_removed(text: str) -> None:
    kept = strip_controls(text)
    assert not any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 for sign in kept)
    assert strip_controls(kept) == kept


@pytest.mark.parametrize(
    "text", ["Q7M2ZK", "q7m2zk", " Q7M-2ZK ", "Q 7 M 2 Z K", "\x1b[200~q7m2zk\x1b[201~\n", "\u00e9Q7M\u20132ZK"]
)
def test_codes(text: str) -> None:
    assert parse_pairing_code(text) == "Q7M2ZK"


@pytest.mark.parametrize(
    "text",
    ["", "Q7M2Z", "Q7M2ZKX", "Q7M-2ZK99", "\u00df\u00df\u00df\u00df\u00df\u00df", "\x1b[200~\x1b[201~", "------"],
)
def test_no_codes(text: str) -> None:
    with pytest.raises(CliError, match="six characters") as caught:
        parse_pairing_code(text)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        ("ws://192.0.2.10", "ws://192.0.2.10:8767"),
        (" ws://192.0.2.10/ \n", "ws://192.0.2.10:8767"),
        ("ws://h/relay/", "ws://h:8767/relay"),
        ("ws://[2001:db8::1]", "ws://[2001:db8::1]:8767"),
        ("ws://[2001:db8::1]:1", "ws://[2001:db8::1]:1"),
        ("ws://h:80", "ws://h:80"),
        ("ws://h:8767/", "ws://h:8767/"),
        ("wss://h", "wss://h"),
        ("wss://h/relay/", "wss://h/relay/"),
        ("\x1b[200~ws://h\x1b[201~", "ws://h:8767"),
        ("http://0.0.0.0:8800", "ws://127.0.0.1:8800"),
        ("http://0.0.0.0", "ws://127.0.0.1:8767"),
        ("HTTPS://[::]:8800/relay", "wss://[::1]:8800/relay"),
        ("http://h", "ws://h:8767"),
        ("https://h/relay", "wss://h/relay"),
    ],
)
def test_addresses(text: str, remote: str) -> None:
    assert parse_relay_url(text) == remote


@pytest.mark.parametrize(
    "text", ["", "h", "ftp://h", "ws://", "ws:// h", "ws://u:p@h", "ws://h:99999", "ws://h\u00e9", "ws://h h"]
)
def test_bad_addresses(text: str) -> None:
    with pytest.raises(CliError, match="--remote must") as caught:
        parse_relay_url(text)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("Q7M2ZK", False), ("svc-relay://pair?x", True), (' {"svc": 1}', True), ("A" * 65, True), ("A" * 64, False)],
)
def test_invites(text: str, is_one: bool) -> None:
    assert looks_like_invite(text) is is_one
