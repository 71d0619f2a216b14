"""The reference phone with its screen, beside the relay of an environment, as `svc phone` runs it."""

from typing import Any

from clients.phone.emulator import EmulatedPhone
from svc_proto.phone.safety.settings import SafetySettings
from svc_proto.phone.screen_server import PhoneScreenServer
from svc_proto.phone.service import PhoneConfig, PhoneState
from svc_proto.service_clients.phone_screen_endpoint import PHONE_SCREEN_FILE
from tests.loops.environment import Environment, ServedProgram

PORT = 41_233
ARMED = SafetySettings(armed=True)  # commands need a confirmation


class PhoneScreen(ServedProgram):
    """Phone `name` with its screen, beside the running relay. `meta` is registered with its pairing code."""

    def __init__(
        self, world: Environment, *, name: str = "Reference phone", safety: SafetySettings = ARMED, **meta: Any
    ) -> None:
        self.backend = EmulatedPhone(name=name)
        self.service: PhoneScreenServer
        relay = f"ws://127.0.0.1:{world.relay.port}"
        config = PhoneConfig(remote=relay, code=world.register(**meta), device_name=name)

        def make(port: int, home: str) -> PhoneScreenServer:
            self.service = PhoneScreenServer(config, self.backend, safety, url=f"http://127.0.0.1:{port}")
            return self.service

        super().__init__(world, world.start_service("phone", make, port=PORT))
        world.eventually(lambda: self.service.phone.state is PhoneState.ONLINE)

    @property
    def token(self) -> str:
        """Return the token of the phone's session, or an empty text."""
        return self.service.phone.token or ""

    @property
    def headers(self) -> dict[str, str]:
        """Return the header field with the credential that a dashboard sends to the phone."""
        listener = self.service._endpoint
        assert listener is not None
        return {"authorization": f"Bearer {listener.secret}"}

    def screen(self) -> Any:
        """Return the phone's present screen as the JSON of GET /screen."""
        return self.request("GET", "/screen").json

    def written(self, name: str = PHONE_SCREEN_FILE) -> str:
        """Return the text of a file of the service home, in the simulator."""
        host = self._world.relay_host  # type: ignore[attr-defined]  # virtual worlds have it
        return str(host.disk.get(f"{host.state}/{name}").decode())
