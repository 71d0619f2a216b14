"""The realtime agent in any environment: a relay, an API server, a scripted provider, and a paired client."""

import base64
import json
from collections.abc import Callable
from typing import Any

from svc_proto.basics.brand import SVC, Brand
from tests.loops.environment import ApiHandle, Environment
from tests.loops.voice_client import VoiceClient, create
from tests.support.servers.api_server import ScriptedApi
from tests.support.servers.realtime_server import FunctionCallTurn, OpenAiRealtimeServer, RealtimeSession, Turn

KEY = "sk-agent-77f1"
ANSWER = "The disk of this computer is 62 percent used."
SOUND = b"\x10\x00" * 3_200  # 200 ms at 16 kHz, as a phone sends it


class RealtimeAgentSetup:
    """A relay, an API server or `scripted` in its place, a provider with the given turns, and a paired client."""

    api: ApiHandle

    def __init__(
        self, world: Environment, *turns: Turn, brand: Brand = SVC, scripted: ScriptedApi | None = None
    ) -> None:
        self.world = world
        if scripted is None:
            self.api = world.api(key=KEY)
            api = f"http://127.0.0.1:{self.api.server.port}"
        else:
            api = world.peer(scripted, port=9001)
        self.peer = OpenAiRealtimeServer(turns=turns)
        url = world.peer(self.peer).replace("http", "ws", 1)
        variables = {"OPENAI_API_KEY": "sk-voice", "OPENAI_REALTIME_URL": f"{url}/v1/realtime", "API_SERVER_KEY": KEY}
        world.set_variables(**variables)
        world.start_relay(webapi_url=api, brand=brand)
        self.token = world.pair().token
        self.answer: dict[str, Any] = {}

    def open(self, **body: object) -> VoiceClient:
        """Create a voice session; return its first WebSocket once the session is ready."""
        self.answer = create(self.world, self.token, "realtime-agent", **{"provider": "openai_realtime", **body})
        client = VoiceClient(self.world, self.token, self.answer)
        client.until("voice.session.ready")
        return client

    def start_turn(self, text: str, **body: object) -> VoiceClient:
        """Create a voice session and start a turn with this text; return its WebSocket."""
        client = self.open(**body)
        client.send("response.create", text=text)
        return client

    @property
    def provider(self) -> RealtimeSession:
        """Return the provider's side of the newest WebSocket."""
        return self.peer.sessions[-1]

    def outputs(self) -> list[dict[str, Any]]:
        """Return the outputs of function calls that the provider received; a placeholder if there are none."""
        said = [message["item"] for message in self.provider.said if message["type"] == "conversation.item.create"]
        outputs = [json.loads(item["output"]) for item in said if item["type"] == "function_call_output"]
        return outputs or [{"ok": None, "cancelled": None}]


def run(text: str, **more: Any) -> FunctionCallTurn:
    return FunctionCallTurn("svc_run_task", {"text": text}, **more)


def talk(client: VoiceClient) -> None:
    """Send an utterance of two chunks of audio, and commit it."""
    audio = base64.b64encode(SOUND).decode()
    for chunk in (1, 2):
        client.send("input_audio.append", chunk_id=chunk, sample_rate=16_000, audio_base64=audio)
    client.send("input_audio.commit")


def play(client: VoiceClient, until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Receive events up to the first that satisfies `until`, and return them.

    Requests for the end of playback are acknowledged; `voice.error` raises AssertionError.
    """
    events: list[dict[str, Any]] = []
    while not events or not until(events[-1]):
        event = client.receive()
        events.append(event)
        assert event["type"] != "voice.error", event
        if event["type"] == "voice.playback_drain.requested":
            client.send("playback.drained", call_id=event["call_id"])
    return events


def ends(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "voice.response.done")


def types(events: list[dict[str, Any]]) -> list[str]:
    """Return the types of the events; equal neighbours count once."""
    kinds = [event["type"] for event in events]
    return [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]


def of(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(event for event in events if event["type"] == kind)
