"""A client of the voice routes, in any world."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.loops.virtual import VirtualWorld
from tests.loops.wires import Answer, Ws
from tests.loops.world import World, bearer

__all__ = ["VoiceClient", "ask_for", "contents", "create", "log_of", "seconds", "set_variables"]


class VoiceClient:
    """A socket of a voice session."""

    def __init__(self, world: World, token: str, answer: dict[str, Any]) -> None:
        self.ws: Ws = world.websocket(answer["websocket_path"], headers=bearer(token), deflate=False)

    def say(self, kind: str, **fields: object) -> None:
        """Send a message."""
        self.ws.send_text(json.dumps({"type": kind, **fields}))

    def hear(self) -> dict[str, Any]:
        """The next event."""
        return self.ws.hear()

    def until(self, kind: str) -> list[dict[str, Any]]:
        """The events up to the next of that type, which is the last."""
        events = [self.hear()]
        while events[-1]["type"] != kind:
            assert kind == "voice.error" or events[-1]["type"] != "voice.error", events[-1]
            events.append(self.hear())
        return events

    def break_off(self) -> None:
        """The connection is cut, without a closing handshake."""
        self.ws.wire.abort()


def create(world: World, token: str, family: str = "output", **body: object) -> dict[str, Any]:
    """A new session; what its caller is told."""
    answer = ask_for(world, token, family, **body)
    assert answer.status == 200, answer
    told: dict[str, Any] = answer.json
    return told


def ask_for(world: World, token: str, family: str, **body: object) -> Answer:
    """The answer to asking for a session, whatever it is."""
    return world.http("POST", f"/voice/{family}/session", body, headers=bearer(token))


def set_variables(world: World, folder: Path | None, **variables: str) -> None:
    """Write `.env` of the service home, where keys and addresses of providers may be. It is a folder of a real host."""
    text = "".join(f"{name}={value}\n" for name, value in variables.items()).encode()
    if isinstance(world, VirtualWorld):
        world.relay_host.disk.put(f"{world.relay_host.state}/.env", text)
    else:
        assert folder is not None
        (folder / ".env").write_bytes(text)


def contents(world: World, path: str) -> bytes:
    """Of a file on the relay's host; empty when there is none yet. On a real one only its owner may read it."""
    if isinstance(world, VirtualWorld):
        disk = world.relay_host.disk
        return disk.get(path) if disk.exists(path) else b""
    file = Path(path)
    if not file.exists():
        return b""
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_bytes()


def log_of(world: World, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The event log of a session, once its last line is there."""
    path = answer["event_log_path"]
    world.eventually(lambda: b".session.closed" in contents(world, path))
    return [json.loads(line) for line in contents(world, path).splitlines()]


def seconds(mp3: bytes) -> float:
    """How long an MP3 file lasts, by a library that is not ours."""
    import av

    with av.open(BytesIO(mp3), format="mp3") as file:
        return float(sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0)))
