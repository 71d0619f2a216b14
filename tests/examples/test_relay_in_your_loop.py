"""Tests of a relay in a loop that another program owns: Starlette's, that of an anyio task group, or trio's."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import anyio
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from examples import relay_in_starlette, relay_in_task_group
from runtimes.net.listener import bind

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/embed-a-core.md"


def test_lifespan_of_the_tutorial() -> None:
    lifespan = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)[1]
    listener = bind("127.0.0.1", 0)
    with listener.sock:
        port = listener.address.port
    found: dict[str, Any] = {}
    exec(lifespan.replace("8767", str(port)), found)
    with TestClient(Starlette(lifespan=found["lifespan"])), urlopen(f"http://127.0.0.1:{port}/health") as answer:
        assert json.load(answer)["status"] == "ok"


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
