"""Host names with a port, as requests name them (RFC 3986 section 3.2), without user information.

A `Host`, an `:authority` and the authority of an absolute target are checked by the same expression, so that the same
request is refused whichever way it comes.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address

__all__ = ["AUTHORITY", "is_ipv6_literal"]

# Nothing is tried twice, however long it is: what is repeated begins in one way only. A comma, which a name may hold in
# theory, makes a list; a port is one of TCP (RFC 9110 section 4.2.1).
_NAME = rb"(?:[A-Za-z0-9._~!$&'()*+;=-]++|%[0-9A-Fa-f]{2})+"
_LITERAL = rb"(\[[0-9A-Fa-f:.]++\])"
_PORT = rb"0*+(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{0,4})"
# Its one group is an address in brackets, if it is one: that is for `is_ipv6_literal` to see.
AUTHORITY = rb"(?:" + _NAME + rb"|" + _LITERAL + rb")(?::" + _PORT + rb")?"


def is_ipv6_literal(brackets: bytes) -> bool:
    """Whether what is in the brackets is an IPv6 address (RFC 3986 section 3.2.2)."""
    try:
        IPv6Address(brackets[1:-1].decode("ascii"))
    except AddressValueError:
        return False
    return True
