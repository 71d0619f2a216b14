"""Another API server, with other settings, on a host of its own; with a relay beside it in one process, perhaps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import evolve

from fuzz.audit import Audit
from fuzz.terms import OPEN
from fuzz.upstream import MODEL_PORT
from fuzz.world import LIMITS, MODEL_KEY
from runtimes.sim.host import Host
from runtimes.sim.process import KILLED, Process
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.basics.entropy import Entropy
from svc_proto.commands import Level
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.machines.device_keys import DeviceKeys
from svc_proto.relay.service import Relay
from svc_proto.wire.events import Event, RequestData, RequestEnd
from tests.support.sim_http import RequestClient as Caller
from tests.support.sim_http import ServerAddress as Target

__all__ = ["MODEL_URL", "Halting", "Lodge"]

PORT, RELAY = 8642, 8767
MODEL_URL = f"http://10.0.0.3:{MODEL_PORT}/v1"


class Lodge(Audit):
    """Who goes through an API of its own. `key` empty: none is asked for. `fit` makes its tables small, say.

    One that is `troubled` may log that something has failed.
    """

    def __init__(
        self,
        audit: Audit,
        *,
        key: str = "lodge-key-4b81d2",
        beside: bool = False,
        model: bool = True,
        fit: Callable[[Api], None] | None = None,
        troubled: bool = False,
        **config: Any,
    ) -> None:
        super().__init__(audit.crowd, audit.name, audit._pass_until, audit._supervise)
        self.rng, self.outer, self.key = audit.rng, audit, key
        self._troubled = troubled
        self.home, self.policy = audit.host(), OPEN
        address, state = self.home.address, self.home.state
        self.inside = Target("127.0.0.1", PORT, f"127.0.0.1:{PORT}")
        self.outside = Target(address, PORT, f"lodge.example:{PORT}")
        self.local = Target("127.0.0.1", RELAY, f"127.0.0.1:{RELAY}")
        self.remote = Target(address, RELAY, f"lodge.example:{RELAY}")
        if key:
            self.world.secrets[key] = "another API's key"
        there = {"model_base_url": MODEL_URL, "model": "sim", "model_api_key": MODEL_KEY} if model else {}
        common: dict[str, Any] = {"home": state, "config_path": f"{state}/config.yaml"}
        self.config = ApiConfig(key=key, **{**there, **common, "relay_url": f"http://127.0.0.1:{RELAY}", **config})

        def make(entropy: Entropy) -> Engine:
            self.api = Api(self.config, limits=LIMITS, keys=self._keys)
            engine = Engine(self.api, entropy=entropy)
            if fit is not None:
                fit(self.api)
            return engine

        near = f"http://127.0.0.1:{PORT}"
        relay = RelayConfig(**common, terminal_tmux=False, webapi_url=near, api_key=key)
        relay = evolve(relay, voice=evolve(relay.voice, webapi_url=near, api_key=key))

        def make_relay(entropy: Entropy) -> Engine:
            return Engine(Relay(relay, limits=LIMITS, keys=self._keys), entropy=entropy)

        self._factories = (make, *((make_relay,) if beside else ()))
        self._begin()

    def _begin(self) -> None:
        """Both of one process, or the API alone."""
        make, *others = self._factories
        self._keys = DeviceKeys() if others else None
        self.relay = self._start(others[0], RELAY, "lodge-relay") if others else None
        self.process = self._start(make, PORT, "lodge")

    def _start(self, make: Callable[[Entropy], Engine], port: int, name: str) -> Process:
        process = self.home.start(make, [port], name=name)
        self.wait(lambda: process.ready, why=f"the {name} does not start")
        return process

    def host(self) -> Host:
        """The same as outside, of the same row."""
        return self.outer.host()

    def shown_here(self) -> dict[str, str]:
        """Nothing: there is no local secret."""
        return {}

    def begin_api(
        self, method: str, path: str, body: object = None, piece: Callable[[bytes], None] | None = None, **headers: str
    ) -> Caller:
        """As of the house's own API, by this one's key."""
        fields = {"authorization": f"Bearer {self.key}"} if self.key else {}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.begin((self.home, self.inside), method, path, body, fields, piece)

    def begin_with(
        self,
        key: str,
        method: str,
        path: str,
        body: object = None,
        piece: Callable[[bytes], None] | None = None,
        *,
        place: tuple[Host, Target],
    ) -> Caller:
        """By another key, and from elsewhere."""
        fields = {"authorization": f"Bearer {key}"} if key else {}
        return self.begin(place, method, path, body, fields, piece)

    def halting(self, method: str, path: str, body: object) -> Halting:
        """Somebody with the key who says half of a request."""
        carrier = self.world.carrier(self.home, self.inside)
        fields = {"authorization": f"Bearer {self.key}"}
        request = (method, path, fields, json.dumps(body).encode())
        caller = Halting(carrier, self.inside, request, on_done=self.world._judge)
        self.rest(0.3)
        return caller

    def again(self, *, kill: bool = False) -> None:
        """It is told to go, or killed, and is there again."""
        self.leave(kill=kill)
        self._begin()
        self.rest(1.0)  # until who was connected has noticed

    def leave(self, *, kill: bool = False) -> None:
        """All of it goes, and nothing was wrong with it."""
        there = [self.process, *([self.relay] if self.relay is not None else [])]
        for process in there:
            if kill:
                process.kill()
            process.stop(10.0)
        self.wait(lambda: not any(process.alive for process in there), 30.0, "another API does not stop")
        self.same(
            [process.exit_code for process in there], [KILLED if kill else 0] * len(there), "how another API ends"
        )
        for process in there:
            for line in process.logs:
                if not self._troubled or line.level < Level.ERROR or line.event == "bug":
                    self.world._judge_log(process, line)


class Halting(Caller):
    """Who says half of a request, and the rest of it later."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self._held: list[Event] = []
        super().__init__(*args, **more)

    def put(self, *events: Event) -> bool:
        """Of a body the first half only."""
        said: list[Event] = []
        for event in events:
            if isinstance(event, RequestData):
                half = len(event.data) // 2
                said.append(RequestData(event.stream, bytes(event.data[:half])))
                self._held.append(RequestData(event.stream, bytes(event.data[half:])))
            elif isinstance(event, RequestEnd):
                self._held.append(event)
            else:
                said.append(event)
        return super().put(*said)

    def go_on(self) -> None:
        """Say the rest."""
        super().put(*self._held)
