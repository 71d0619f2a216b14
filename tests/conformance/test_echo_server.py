"""The echo on a real socket, as a program."""

from __future__ import annotations

import urllib.request

from tests.conformance.tools import echo_server


def test_it_serves_until_it_is_told_to_stop() -> None:
    with (
        echo_server() as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/x", data=b"abc", timeout=20.0) as answer,
    ):
        assert answer.read() == b"abc"
