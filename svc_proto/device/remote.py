"""Where a relay is, as the two addresses that a phone needs of it."""

from __future__ import annotations

from attrs import frozen

from svc_proto.wire.urls import parse_url

__all__ = ["Remote"]


@frozen
class Remote:
    """A relay by its ws:// or wss:// URL, which `parse_url` accepts; without a path, `/ws` is used."""

    url: str

    @property
    def socket_url(self) -> str:
        """The URL of the WebSocket."""
        if parse_url(self.url).target != "/":
            return self.url
        return self._base(("ws", "wss")) + "/ws"

    @property
    def http_url(self) -> str:
        """The relay's HTTP address, of the same host and port, without a path."""
        return self._base(("http", "https"))

    def _base(self, schemes: tuple[str, str]) -> str:
        url = parse_url(self.url)
        host = f"[{url.host}]" if ":" in url.host else url.host
        return f"{schemes[url.tls]}://{host}:{url.port}"
