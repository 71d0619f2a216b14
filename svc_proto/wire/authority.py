"""Authority of a request: a host name or address, perhaps with a port (RFC 3986 section 3.2); no user information.

One expression checks a `Host`, an `:authority` and the authority of an absolute target.
"""

from ipaddress import AddressValueError, IPv6Address

__all__ = ["AUTHORITY", "is_ipv6_literal"]

# The expressions match without backtracking at any length: each repeated part begins in one way only. A comma, which a
# name may hold in theory, makes a list; a port is one of TCP (RFC 9110 section 4.2.1).
_NAME = rb"(?:[A-Za-z0-9._~!$&'()*+;=-]++|%[0-9A-Fa-f]{2})+"
_LITERAL = rb"(\[[0-9A-Fa-f:.]++\])"
_PORT = rb"0*+(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{0,4})"
# The only group is an address in brackets, which `is_ipv6_literal` checks.
AUTHORITY = rb"(?:" + _NAME + rb"|" + _LITERAL + rb")(?::" + _PORT + rb")?"


def is_ipv6_literal(brackets: bytes) -> bool:
    """Report whether a text with its brackets, such as `[::1]`, is an IPv6 address (RFC 3986 section 3.2.2)."""
    try:
        IPv6Address(brackets[1:-1].decode("ascii"))
    except AddressValueError:
        return False
    return True
