"""The reference phone with its screen, in a world: beside the relay, as `svc phone` runs it."""

from __future__ import annotations

import json
from typing import Any

from clients.phone.handset import SimulatedHandset
from svc_proto.device.phone import PhoneConfig, PhoneState
from svc_proto.device.safety.settings import SafetySettings
from svc_proto.device.screen import SeenPhone
from svc_proto.peers.phone_door import PHONE_DOOR
from tests.loops.wires import Answer, HttpClient
from tests.loops.world import LOOPBACK, World

__all__ = ["Seen"]

PORT = 41_233
ARMED = SafetySettings(armed=True)  # and it asks


class Seen:
    """`name` is the device's; the relay of the world runs already. `meta` is attached to the code that it pairs by."""

    def __init__(
        self, world: World, *, name: str = "Reference phone", safety: SafetySettings = ARMED, **meta: Any
    ) -> None:
        self._world = world
        self.handset = SimulatedHandset(name=name)
        self.service: SeenPhone
        relay = f"ws://127.0.0.1:{world.relay.port}"
        config = PhoneConfig(remote=relay, code=world.register(**meta), device_name=name)

        def make(port: int, home: str) -> SeenPhone:
            self.service = SeenPhone(config, self.handset, safety, url=f"http://127.0.0.1:{port}")
            return self.service

        self.server = world.start_service("phone", make, port=PORT)
        world.eventually(lambda: self.service.phone.state is PhoneState.ONLINE)

    @property
    def token(self) -> str:
        """Of its session."""
        return self.service.phone.token or ""

    def headers(self) -> dict[str, str]:
        """What a dashboard shows."""
        door = self.service._door
        assert door is not None
        return {"authorization": f"Bearer {door.secret}"}

    def client(self, peer: str = LOOPBACK) -> HttpClient:
        wire = self._world.connect(peer, port=self.server.port)
        return HttpClient(wire, f"127.0.0.1:{self.server.port}", self._world.entropy)

    def ask(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Answer:
        client = self.client()
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = client.ask(method, path, headers=self.headers() if headers is None else headers, body=data)
        client.wire.close()
        return answer

    def screen(self) -> Any:
        """What it shows."""
        return self.ask("GET", "/screen").json

    def written(self, name: str = PHONE_DOOR) -> str:
        """A file of the home, in the simulator."""
        host = self._world.relay_host  # type: ignore[attr-defined]  # virtual worlds have it
        return str(host.disk.get(f"{host.state}/{name}").decode())
