"""Where a relay is, as the two addresses that a phone needs of it."""

from __future__ import annotations

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.urls import parse_url

__all__ = ["DERIVED_PROBE", "RelayUrl", "derive_relay_url"]

RELAY_PORT = 8767  # spec "Limits"
DERIVED_PROBE = "/voice/config"  # spec: what the client asks for at a relay whose address it has derived


@frozen
class RelayUrl:
    """A relay by its ws:// or wss:// URL, which `parse_url` accepts. Its path, without a `/ws` at the end, is before
    every other (wire core 10.4: "keeps other path prefixes"); without a query the WebSocket is at `/ws` there."""

    url: str

    @property
    def socket_url(self) -> str:
        """The URL of the WebSocket."""
        return self.url if "?" in parse_url(self.url).target else self._base(("ws", "wss")) + "/ws"

    @property
    def http_url(self) -> str:
        """The relay's HTTP address."""
        return self._base(("http", "https"))

    @property
    def pinned(self) -> tuple[str, int] | None:
        """Host and port whose certificate is pinned; None without TLS."""
        url = parse_url(self.url)
        return (url.host, url.port) if url.tls else None

    def _base(self, schemes: tuple[str, str]) -> str:
        url = parse_url(self.url)
        host = f"[{url.host}]" if ":" in url.host else url.host
        path = url.target.partition("?")[0].rstrip("/").removesuffix("/ws")
        return f"{schemes[url.tls]}://{host}:{url.port}{path}"


def derive_relay_url(api_url: str) -> str:
    """The relay beside an API server, unless somebody says otherwise: ws for http, wss for https, and port 8767.

    Raises `RemoteProtocolError` for what is no http or https URL.
    """
    url = parse_url(api_url)
    if url.scheme not in ("http", "https"):
        raise RemoteProtocolError("it must be an http:// or https:// URL")
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{'wss' if url.tls else 'ws'}://{host}:{RELAY_PORT}"
