"""Bind addresses of servers, and the form of hosts in URLs. This module imports no other one of the project."""

__all__ = ["LOCAL_HOSTS", "WILDCARD_ADDRESSES", "bracket_ipv6"]

WILDCARD_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # bind addresses that include loopback
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", *WILDCARD_ADDRESSES)  # useless for a phone


def bracket_ipv6(host: str) -> str:
    """Return a host in the form of URLs: an IPv6 address in brackets, any other host unchanged."""
    return f"[{host}]" if ":" in host else host
