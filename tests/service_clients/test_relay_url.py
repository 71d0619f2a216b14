import pytest

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.phone.service import PhoneConfig
from svc_proto.service_clients.relay_url import RelayUrl, derive_relay_url


@pytest.mark.parametrize(
    ("remote", "socket_url", "http_url"),
    [
        ("ws://h", "ws://h:80/ws", "http://h:80"),
        ("ws://h:1/", "ws://h:1/ws", "http://h:1"),
        ("ws://h:1/#part", "ws://h:1/ws", "http://h:1"),
        ("wss://h", "wss://h:443/ws", "https://h:443"),
        ("wss://h/relay/ws?a=b", "wss://h/relay/ws?a=b", "https://h:443/relay"),
        ("wss://h/relay/ws", "wss://h:443/relay/ws", "https://h:443/relay"),
        ("wss://h/relay/", "wss://h:443/relay/ws", "https://h:443/relay"),
        ("ws://[::1]:8767", "ws://[::1]:8767/ws", "http://[::1]:8767"),
    ],
)
def test_urls(remote: str, socket_url: str, http_url: str) -> None:
    assert (RelayUrl(remote).socket_url, RelayUrl(remote).http_url) == (socket_url, http_url)
    assert PhoneConfig(remote=remote, code="ABC123").http_url == http_url


@pytest.mark.parametrize(
    ("api", "relay"),
    [
        ("http://192.168.1.5:8642", "ws://192.168.1.5:8767"),
        ("https://box.example", "wss://box.example:8767"),
        ("https://box.example:8642/v1/", "wss://box.example:8767"),
        ("http://[fd00::1]:8642", "ws://[fd00::1]:8767"),
    ],
)
def test_the_relay_beside_an_api(api: str, relay: str) -> None:
    assert derive_relay_url(api) == relay


@pytest.mark.parametrize("api", ["ws://h:8642", "h:8642", "http://", "ftp://h"])
def test_invalid_api_urls(api: str) -> None:
    with pytest.raises(RemoteProtocolError):
        derive_relay_url(api)


@pytest.mark.parametrize(
    ("remote", "where"), [("wss://h", ("h", 443)), ("wss://[::1]:1/x", ("::1", 1)), ("ws://h", None)]
)
def test_pinned_address(remote: str, where: tuple[str, int] | None) -> None:
    assert RelayUrl(remote).pinned == where
