"""Targets, queries and URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire import urls


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("/", ("/", "")),
        ("/a/b?x=1&y=%20?", ("/a/b", "x=1&y=%20?")),
        ("/a%2Fb", ("/a%2Fb", "")),
        ("//host/a", ("//host/a", "")),
        ("*", ("*", "")),
        ("http://relay.example:8767/ws?t=1", ("/ws", "t=1")),
        ("http://relay.example?t=1", ("/", "t=1")),
        ("http://relay.example", ("/", "")),
    ],
)
def test_split_target(target: str, parts: tuple[str, str]) -> None:
    assert urls.split_target(target) == parts


@pytest.mark.parametrize("target", ["", "a", "host:443", "/a#b", "/a%2", "/%zz", "**"])
def test_bad_targets(target: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        urls.split_target(target)
    assert caught.value.status == 400


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_segments_round_trip(text: str) -> None:
    segment = urls.encode_segment(text)
    assert "/" not in segment
    assert urls.decode_segment(segment) == text


def test_a_segment_is_decoded_once() -> None:
    assert urls.decode_segment("%252e%2541") == "%2e%41"


@pytest.mark.parametrize("segment", ["%00", "a%", "%f", "%gg", "%ff", "%ed%a0%80"])
def test_bad_segments(segment: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        urls.decode_segment(segment)
    assert caught.value.status == 400


def test_query() -> None:
    assert urls.parse_query("path=%2Ftmp%2Fa+b&x=&path=2&flag") == {"path": "/tmp/a b", "x": "", "flag": ""}
    assert urls.parse_query_path("a=1&path=/b%20c+d%E9%00&path=x", "path") == "/b c d\udce9\ufffd"
    assert urls.parse_query_path("a=1", "path") == urls.parse_query_path("", "path") == ""
    assert urls.parse_query_list("a=1&a=2") == [("a", "1"), ("a", "2")]
    assert urls.parse_query("a=%ff%00") == {"a": "\ufffd\ufffd"}


@given(st.text())
def test_no_query_raises(query: str) -> None:
    urls.parse_query(query)


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("http://a", urls.Url("http", "a", 80, False, "/")),
        ("HTTPS://A.example:8443/x/y?z=1#f", urls.Url("https", "a.example", 8443, True, "/x/y?z=1")),
        ("ws://127.0.0.1:8767/ws", urls.Url("ws", "127.0.0.1", 8767, False, "/ws")),
        ("wss://[2001:db8::1]/", urls.Url("wss", "2001:db8::1", 443, True, "/")),
        ("http://a:?q", urls.Url("http", "a", 80, False, "/?q")),
    ],
)
def test_parse_url(url: str, parsed: urls.Url) -> None:
    assert urls.parse_url(url) == parsed


@pytest.mark.parametrize(
    "url",
    [
        *("", "a", "/a", "ftp://a/", "http://", "http:///a", "http://user@a/", "http://user:s3cret@a/", "http://@a/"),
        *("http://a:0/", "http://a:65536/", "http://a:b/", "http://[::1", "http://a b/", "http://a/\n"),
        *("http://\N{LATIN SMALL LETTER E WITH ACUTE}/", "http://a_b!/", "http://[fe80::1%25eth0]/"),
    ],
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        urls.parse_url(url)
    assert "s3cret" not in str(caught.value)


@given(st.text() | st.text("ahtps:/[]@?#.%0 9").map("http://".__add__))
def test_nothing_but_protocol_errors_escape(text: str) -> None:
    for parse in (urls.parse_url, urls.split_target, urls.decode_segment):
        try:
            parse(text)
        except RemoteProtocolError:
            continue


@pytest.mark.parametrize(
    ("locations", "target"),
    [
        ([b"/mcp/"], "http://a:80/mcp/"),
        ([b"mcp/?x=1#part"], "http://a:80/mcp/?x=1"),
        ([b"http://a/b", b"//a/b"], "http://a/b"),
        ([b"HTTP://A:80/b"], "HTTP://A:80/b"),
        ([b""], "http://a:80/mcp"),
        ([b"https://a/b", b"http://a:81/b", b"http://b/", b"//b/", b"http://a@b/", b"http://[/", b"/caf\xe9"], None),
        ([b"file:///etc"], None),
    ],
)
def test_redirect_within_the_origin(locations: list[bytes], target: str | None) -> None:
    for location in locations:
        found = urls.redirect_within_origin("http://a:80/mcp", location)
        assert (found and found.lower()) == (target and target.lower())


def test_has_scheme() -> None:
    assert urls.has_scheme("wss://a/b", "ws", "wss")
    assert not urls.has_scheme("http://a/b", "ws", "wss")
    assert not urls.has_scheme("no URL", "http")
