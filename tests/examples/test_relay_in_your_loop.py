"""A relay in a loop that another program owns: a Starlette lifespan, a task group of anyio, a nursery of trio."""

from __future__ import annotations

import json
from urllib.request import urlopen

import anyio
import pytest
from starlette.testclient import TestClient

from examples import relay_in_starlette, relay_in_task_group
from runtimes.net.listener import bind


def test_starlette(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_in_starlette, "PORT", 0)
    for _ in range(2):  # an app may start again
        with TestClient(relay_in_starlette.app) as client:
            place = client.get("/relay").json()["relay"]
            with urlopen(f"{place}/health", timeout=30.0) as answer:
                assert json.load(answer)["status"] == "ok"
        with pytest.raises(OSError, match="refused"):
            urlopen(f"{place}/health", timeout=30.0)


@pytest.mark.parametrize("library", ["anyio", "trio"])
def test_task_groups(library: str) -> None:
    assert relay_in_task_group.main(library).startswith(b"HTTP/1.1 200 OK\r\n")


def test_anyio_on_trio() -> None:
    listener = bind("127.0.0.1", 0)
    with listener.sock:
        health = anyio.run(relay_in_task_group.in_task_group, listener, backend="trio")
    assert health.startswith(b"HTTP/1.1 200 OK\r\n")
