"""Which address of this host others can use: its own programs, and phones, which an invite leads to it.

What a server binds to is no address where it stands for every interface: our own programs use loopback then, and a
phone the address on the local network. A relay that is bound to loopback alone stays there in an invite too (a phone
on a cable, a proxy in front); an API that is, is said to be where the phone can look for it (wire core 2.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from svc_proto.commands import Compute
from svc_proto.engine.files import ensure_secret
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure
from svc_proto.machines.pairing_payload import encode_payload, pairing_url, sign_payload
from svc_proto.relay_config import RelayConfig

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = [
    "WILDCARD_ADDRESSES",
    "LOCAL_HOSTS",
    "bracket_ipv6",
    "advertised_host",
    "lan_address",
    "relay_address",
    "sign_invite",
]

WILDCARD_ADDRESSES = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # bind addresses that loopback is part of
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", *WILDCARD_ADDRESSES)  # of no use to a phone
LAN_TIMEOUT = 1.0  # s


def bracket_ipv6(host: str) -> str:
    """A host as URLs have it."""
    return f"[{host}]" if ":" in host else host


def lan_address(engine: Engine) -> Flow[str]:
    """This host's address on its network; 127.0.0.1 where it has none."""
    found = yield from run_operation(engine, Compute(engine.new_op(), "lan_address"), within=LAN_TIMEOUT)
    return found if isinstance(found, str) else "127.0.0.1"


def advertised_host(host: str, lan: str) -> str:
    """The host of an API server as a phone can look for it."""
    return lan if host.strip().lower() in LOCAL_HOSTS else host.strip()


def relay_address(config: RelayConfig, lan: str) -> str:
    """The URL of the relay as an invite has it."""
    host = lan if config.host in WILDCARD_ADDRESSES else config.host
    return f"{'wss' if config.tls else 'ws'}://{bracket_ipv6(host)}:{config.port}"


def sign_invite(
    engine: Engine, config: RelayConfig, payload: Mapping[str, object]
) -> Flow[tuple[str, str, Failure | None]]:
    """The text of a QR code, and the invite URL with the same: signed, or why they are not."""
    secret = yield from ensure_secret(engine, config.qr_secret_name)
    problem = secret if isinstance(secret, Failure) else None
    text = encode_payload(payload if isinstance(secret, Failure) else sign_payload(payload, secret))
    return text, pairing_url(config.brand, text), problem
