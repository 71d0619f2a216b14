"""URL of a relay, and the two addresses that a phone derives from it."""

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.urls import parse_url

__all__ = ["DERIVED_PROBE", "RelayUrl", "derive_relay_url"]

RELAY_PORT = 8767  # spec "Limits"
DERIVED_PROBE = "/voice/config"  # spec: probe of a relay whose address was derived


@frozen
class RelayUrl:
    """A relay by its ws:// or wss:// URL, which `parse_url` accepts.

    The URL's path, without a final `/ws`, is the prefix of all paths of the relay (wire core 10.4: "keeps other path
    prefixes"). Without a query the WebSocket is at `/ws` under that path; with one, it is at the URL itself.
    """

    url: str

    @property
    def socket_url(self) -> str:
        """URL of the WebSocket."""
        return self.url if "?" in parse_url(self.url).target else self._base(("ws", "wss")) + "/ws"

    @property
    def http_url(self) -> str:
        """HTTP address of the relay."""
        return self._base(("http", "https"))

    @property
    def pinned(self) -> tuple[str, int] | None:
        """Return the host and port for which a client pins the relay's certificate; None without TLS."""
        url = parse_url(self.url)
        return (url.host, url.port) if url.tls else None

    def _base(self, schemes: tuple[str, str]) -> str:
        url = parse_url(self.url)
        host = f"[{url.host}]" if ":" in url.host else url.host
        path = url.target.partition("?")[0].rstrip("/").removesuffix("/ws")
        return f"{schemes[url.tls]}://{host}:{url.port}{path}"


def derive_relay_url(api_url: str) -> str:
    """Return the default URL of the relay beside an API server: ws for http, wss for https, and port 8767.

    Raises `RemoteProtocolError` for an invalid URL and for one that is not http or https.
    """
    url = parse_url(api_url)
    if url.scheme not in ("http", "https"):
        raise RemoteProtocolError("it must be an http:// or https:// URL")
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{'wss' if url.tls else 'ws'}://{host}:{RELAY_PORT}"
