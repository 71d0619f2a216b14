"""Addresses of this host with their interfaces, and the one where a phone on the same network finds it.

An address of a container bridge, of a VPN or of the link alone is used only where nothing better exists.
"""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from attrs import frozen

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import Compute
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.schema.json_object import JsonObject, as_array

__all__ = ["AddressKind", "HostAddress", "HostAddresses", "find_host_addresses", "parse_addresses"]

ADDRESSES_TIMEOUT = 1.0  # s
_CONTAINER = re.compile(
    r"(docker|veth|virbr|vmnet|vboxnet|podman|cni|flannel|cali|cilium|lxcbr|lxdbr|kube|weave|nerdctl|incusbr|bridge1)"
    r".*|br-[0-9a-f]{12}",
    re.IGNORECASE,
)
_VPN = re.compile(
    r"(tun|tap|wg|tailscale|zt|ppp|utun|ipsec|nordlynx|proton|mullvad|cscotun|gpd|outline|cloudflarewarp|vpn|nebula).*",
    re.IGNORECASE,
)
_MESH_NETWORKS = (ip_network("100.64.0.0/10"), ip_network("fd7a:115c:a1e0::/48"))  # RFC 6598, and that of Tailscale


class AddressKind(IntEnum):
    """Kind of an address, best first."""

    LAN = 0
    INTERNET = 1
    VPN = 2
    CONTAINER = 3
    LINK_LOCAL = 4
    DOWN = 5  # from here on never used
    SCOPED = 6  # link-local IPv6: a URL would need the name of the phone's interface
    LOOPBACK = 7


REASONS = {
    AddressKind.LAN: "another address comes first: --host names this one",
    AddressKind.INTERNET: "an address of the local network comes first: --host names this one",
    AddressKind.VPN: "belongs to a VPN: --host names it",
    AddressKind.CONTAINER: "belongs to a bridge of containers or virtual machines",
    AddressKind.LINK_LOCAL: "works on one link only",
    AddressKind.SCOPED: "works on one link only",
    AddressKind.DOWN: "its interface is down",
    AddressKind.LOOPBACK: "leads to the phone itself",
}


@fast_frozen
class HostAddress:
    """An address of this host."""

    address: str
    interface: str
    kind: AddressKind
    is_default: bool = False  # the source address of the default route

    @property
    def version(self) -> int:
        """The IP version of the address: 4 or 6."""
        return 6 if ":" in self.address else 4

    @property
    def is_indirect(self) -> bool:
        """Report whether the address belongs to a VPN, a container or a single link, or is never used."""
        return self.kind >= AddressKind.VPN


@frozen
class HostAddresses:
    """Addresses of this host, best first."""

    rows: tuple[HostAddress, ...] = ()

    def best(self, bind_host: str = "::") -> str | None:
        """Return the address for a phone of a server that is bound to all interfaces; None without one."""
        row = self.best_row(bind_host)
        return None if row is None else row.address

    def best_row(self, bind_host: str = "::") -> HostAddress | None:
        """Return the row of `best`, or None. A server on `0.0.0.0` has no IPv6 address; one on `::` has both."""
        versions = (4,) if bind_host in ("0.0.0.0", "") else (4, 6)
        return next((row for row in self.rows if row.kind < AddressKind.DOWN and row.version in versions), None)

    def left_out(self, used: Sequence[str]) -> list[tuple[HostAddress, str]]:
        """Return the addresses that are not in `used`, but for loopback, each with the reason why it is not used."""
        return [
            (row, REASONS[row.kind])
            for row in self.rows
            if row.address not in used and row.kind is not AddressKind.LOOPBACK
        ]


def find_host_addresses(engine: Engine) -> Flow[HostAddresses]:
    """Return the addresses of this host; none if the host cannot list them."""
    found = yield from run_operation(engine, Compute(engine.new_op(), "network_addresses"), within=ADDRESSES_TIMEOUT)
    return HostAddresses(parse_addresses(as_array(found) or ()))


def parse_addresses(listed: Sequence[object]) -> tuple[HostAddress, ...]:
    """Classify the listed addresses, and sort them by kind, then IPv4 before IPv6, then the default route's first.

    The members read are `interface`, `address`, `up`, `point_to_point` and `default`. Entries without a valid address
    are skipped.
    """
    rows = [row for row in (_address(JsonObject.of(each)) for each in listed) if row is not None]
    return tuple(sorted(rows, key=lambda row: (row.kind, row.version, not row.is_default)))


def _address(members: Mapping[str, object]) -> HostAddress | None:
    found = JsonObject.of(members)
    interface, text = found.text("interface"), found.text("address").partition("%")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    tunnel = found.get("point_to_point") is True
    kind = _kind(interface, address, tunnel=tunnel, up=found.get("up") is not False)
    return HostAddress(text, interface, kind, found.get("default") is True)


def _kind(interface: str, address: IPv4Address | IPv6Address, *, tunnel: bool, up: bool) -> AddressKind:
    if address.is_loopback or address.is_unspecified:
        return AddressKind.LOOPBACK
    if not up:
        return AddressKind.DOWN
    if address.is_link_local:
        return AddressKind.LINK_LOCAL if address.version == 4 else AddressKind.SCOPED
    if _CONTAINER.fullmatch(interface):
        return AddressKind.CONTAINER
    meshed = any(address in network for network in _MESH_NETWORKS if network.version == address.version)
    if tunnel or meshed or _VPN.fullmatch(interface):
        return AddressKind.VPN
    return AddressKind.INTERNET if address.is_global else AddressKind.LAN
