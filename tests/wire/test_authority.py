"""Validation of authorities."""

import re

import pytest

from svc_proto.wire.authority import AUTHORITY, is_ipv6_literal

GOOD = [
    *(b"a", b"a.example.", b"A-b_c~1", b"a:", b"a:0", b"a:80", b"a:65535", b"a:0080", b"a%2d", b"a!$&'()*+;="),
    *(b"127.0.0.1:1", b"[::1]", b"[2001:DB8::1]:443", b"[::ffff:127.0.0.1]"),
]
BAD = [
    # RFC 9110 section 7.2, RFC 3986 section 3.2
    *(b"", b":80", b"a b", b"a,b", b"u@a", b"u:p@a", b"a/b", b"a?b", b"a#b", b"a\\b", b"a:b", b"a:+1", b"a:80:80"),
    b"\xe9",
    # RFC 3986 section 2.1: an escape has two digits
    *(b"a%", b"a%2", b"a%zz"),
    # RFC 9110 section 4.2.1: a TCP port
    *(b"a:65536", b"a:99999", b"a:100000", b"[::1]:65536"),
    # RFC 3986 section 3.2.2: brackets enclose an IPv6 address
    *(b"::1", b"[]", b"[::1", b"[::1]x", b"[1.2.3.4]", b"[:::]", b"[1::2::3]", b"[12345::]", b"[::1%251]"),
]


def believed(value: bytes) -> bool:
    found = re.fullmatch(AUTHORITY, value)
    return found is not None and (found[1] is None or is_ipv6_literal(found[1]))


@pytest.mark.parametrize("value", GOOD)
def test_valid_authorities(value: bytes) -> None:
    assert believed(value)


@pytest.mark.parametrize("value", BAD)
def test_invalid_authorities(value: bytes) -> None:
    assert not believed(value)


def test_long_authorities_are_checked_in_linear_time() -> None:
    assert not believed(b"a%41" * 8000 + b"%")
    assert believed(b"a%41" * 8000)
