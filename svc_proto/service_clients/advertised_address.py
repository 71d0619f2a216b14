"""Addresses of this host's servers for a phone, and the signing of an invite that contains them.

An invite names the host's best address, `lan_address`, in place of a bind address for all interfaces (wire core 2.6).
"""

from collections.abc import Mapping

from svc_proto.engine.core import Engine
from svc_proto.engine.files import ensure_secret
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.machines.pairing_payload import encode_payload, pairing_url, sign_payload
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.service_clients.host_addresses import find_host_addresses

__all__ = [
    "advertised_host",
    "lan_address",
    "relay_address",
    "relay_url_at",
    "sign_invite",
]


def lan_address(engine: Engine, bind_host: str = "::") -> Flow[str]:
    """Return this host's best address for a phone of a server that is bound to a wildcard; 127.0.0.1 without one."""
    return (yield from find_host_addresses(engine)).best(bind_host) or "127.0.0.1"


def advertised_host(host: str, lan: str) -> str:
    """Return the host of an API server for a phone: `lan` in place of each of `LOCAL_HOSTS`, any other host trimmed."""
    return lan if host.strip().lower() in LOCAL_HOSTS else host.strip()


def relay_address(config: RelayConfig, lan: str) -> str:
    """Return the URL of the relay for an invite, with `lan` in place of a wildcard address."""
    return relay_url_at(config, lan if config.host in WILDCARD_ADDRESSES else config.host)


def relay_url_at(config: RelayConfig, host: str) -> str:
    """Return the URL of the relay at an address of this host."""
    return f"{'wss' if config.tls else 'ws'}://{bracket_ipv6(host)}:{config.port}"


def sign_invite(
    engine: Engine, config: RelayConfig, payload: Mapping[str, object]
) -> Flow[tuple[str, str, Failure | None]]:
    """Sign an invite; return the text of its QR code, its URL, and the failure that left it unsigned, if any."""
    secret = yield from ensure_secret(engine, config.qr_secret_name)
    problem = secret if isinstance(secret, Failure) else None
    text = encode_payload(payload if isinstance(secret, Failure) else sign_payload(payload, secret))
    return text, pairing_url(config.brand, text), problem
