"""The addresses of a relay."""

from __future__ import annotations

import pytest

from svc_proto.device.phone import PhoneConfig
from svc_proto.device.remote import Remote


@pytest.mark.parametrize(
    ("remote", "socket_url", "http_url"),
    [
        ("ws://h", "ws://h:80/ws", "http://h:80"),
        ("ws://h:1/", "ws://h:1/ws", "http://h:1"),
        ("ws://h:1/#part", "ws://h:1/ws", "http://h:1"),
        ("wss://h", "wss://h:443/ws", "https://h:443"),
        ("wss://h/relay/ws?a=b", "wss://h/relay/ws?a=b", "https://h:443"),
        ("ws://[::1]:8767", "ws://[::1]:8767/ws", "http://[::1]:8767"),
    ],
)
def test_urls(remote: str, socket_url: str, http_url: str) -> None:
    assert (Remote(remote).socket_url, Remote(remote).http_url) == (socket_url, http_url)
    assert PhoneConfig(remote=remote, code="ABC123").http_url == http_url
