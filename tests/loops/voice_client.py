"""Test client of the voice routes, in any environment."""

import json
from io import BytesIO
from typing import Any

from tests.loops.clients import WebSocketTestClient
from tests.loops.environment import Environment, bearer
from tests.support.http_codec import Response


class VoiceClient:
    def __init__(self, world: Environment, token: str, answer: dict[str, Any]) -> None:
        self.ws: WebSocketTestClient = world.websocket(answer["websocket_path"], headers=bearer(token), deflate=False)

    def send(self, kind: str, **fields: object) -> None:
        self.ws.send_text(json.dumps({"type": kind, **fields}))

    def receive(self) -> dict[str, Any]:
        return self.ws.receive_message()

    def until(self, kind: str) -> list[dict[str, Any]]:
        """Return the events up to and including the next of this type; fail for another `voice.error`."""
        events = [self.receive()]
        while events[-1]["type"] != kind:
            assert kind == "voice.error" or events[-1]["type"] != "voice.error", events[-1]
            events.append(self.receive())
        return events

    def break_off(self) -> None:
        """Cut the connection without a closing handshake."""
        self.ws.wire.abort()


def create(world: Environment, token: str, family: str = "output", **body: object) -> dict[str, Any]:
    """Create a voice session and return its description; `family` is a part of the route."""
    answer = ask_for(world, token, family, **body)
    assert answer.status == 200, answer
    told: dict[str, Any] = answer.json
    return told


def ask_for(world: Environment, token: str, family: str, **body: object) -> Response:
    """Request a voice session and return the response, also a refusal."""
    return world.http("POST", f"/voice/{family}/session", body, headers=bearer(token))


def log_of(world: Environment, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a voice session's event log, once the session's end is written."""
    path = answer["event_log_path"]
    world.eventually(lambda: b".session.closed" in world.contents(path))
    return [json.loads(line) for line in world.contents(path).splitlines()]


def seconds(mp3: bytes) -> float:
    """Return the duration of an MP3 file in seconds, measured by PyAV."""
    import av

    with av.open(BytesIO(mp3), format="mp3") as file:
        return float(sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0)))
