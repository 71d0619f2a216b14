"""Addresses of this host's interfaces, by psutil, with the source addresses of its default routes."""

from __future__ import annotations

import socket

__all__ = ["list_network_addresses"]

PROBES = {  # addresses of documentation: connecting a datagram socket to them sends nothing
    socket.AF_INET: "192.0.2.1",  # RFC 5737
    socket.AF_INET6: "2001:db8::1",  # RFC 3849
}
DISCARD_PORT = 9


def list_network_addresses() -> list[dict[str, object]]:
    """Return interface, address, `up`, `point_to_point` and `default` of each IPv4 and IPv6 address."""
    import psutil  # noqa: PLC0415, RUF100 - loaded when first needed: start-up is a user's time

    states, defaults = psutil.net_if_stats(), {_source(family, probe) for family, probe in PROBES.items()}
    rows: list[dict[str, object]] = []
    for interface, addresses in psutil.net_if_addrs().items():
        state = states.get(interface)
        flags = () if state is None else state.flags.split(",")
        rows += [
            {
                "interface": interface,
                "address": each.address,
                "up": state is None or state.isup,
                "point_to_point": "pointopoint" in flags,
                "default": each.address.partition("%")[0] in defaults,
            }
            for each in addresses
            if each.family in PROBES
        ]
    return rows


def _source(family: socket.AddressFamily, probe: str) -> str:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((probe, DISCARD_PORT))
            return str(sock.getsockname()[0])
    except OSError:  # no route, or no such family
        return ""
