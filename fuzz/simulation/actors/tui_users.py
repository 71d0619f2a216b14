"""TUI users of the simulation: devices that use an agent gateway by the TUI channel, with JSON-RPC lines each way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import ActorContext, SignedInDevice, StepHandler
from fuzz.simulation.deployment import GATEWAY
from fuzz.simulation.invariants import Invariant, violated
from fuzz.steps import Step, UseGateway
from runtimes.sim.child import ScriptedProgram, SimChild
from svc_proto.commands import SignalName

FLOODS = (40, 200, 400, 800)  # events that a request may bring
READY = {"jsonrpc": "2.0", "method": "event", "params": {"type": "gateway.ready", "payload": {"skin": {}}}}
STUBBORN = 0.3  # share of gateways that ignore signals other than SIGKILL


@define(eq=False)
class _TuiState:
    """Use of the TUI channel by a device."""

    attached: int = 0  # gateways that were started for it
    lost: int = 0  # gateways reported as lost
    pid: int = 0  # of the gateway started last
    asked: dict[str, int] = field(factory=dict)  # unanswered requests by id: the mark


class _EchoGateway(ScriptedProgram):
    """Gateway that answers each request; before that, `flood` sends events and `noise` no JSON; `die` exits instead.

    A share of the gateways ignores signals other than SIGKILL.
    """

    def __init__(self, child: SimChild, gateways: TuiUsers) -> None:
        super().__init__(child)
        self._gateways = gateways
        self._heard = ""
        self.said = 0  # lines
        self.told = 0  # lines that were delivered
        gateways.there[child.pid] = self
        self._stubborn = gateways.world.rng.random() < STUBBORN

    def on_start(self) -> None:
        self._send(READY)

    def on_input(self, data: bytes) -> None:
        *lines, self._heard = (self._heard + data.decode()).split("\n")
        for line in lines:
            request = json.loads(line)
            mark = request["params"]["mark"]
            self._gateways.on_gateway_request(mark)
            match request["method"]:
                case "die":
                    self.child.exit(3)
                    return
                case "noise":
                    self.child.emit(b"\xff{nonsense\n\n")
                case "flood":
                    events = FLOODS[mark % len(FLOODS)]
                    self._send(*[{"jsonrpc": "2.0", "method": "event", "params": {"mark": mark}}] * events)
                case _:
                    pass
            self._send({"jsonrpc": "2.0", "id": request["id"], "result": {"mark": mark}})

    def on_signal(self, signal: SignalName) -> None:
        if not self._stubborn:
            super().on_signal(signal)

    def _send(self, *messages: Mapping[str, object]) -> None:
        lines: list[str] = []
        for message in messages:
            self.said += 1
            lines.append(f"{json.dumps({**message, 'line': [self.child.pid, self.said]})}\n")
        self.child.emit("".join(lines).encode())


class TuiUsers:
    """Handler of the steps in which devices use a gateway by the TUI channel; checks what each device receives."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.handlers: dict[type[Step], StepHandler] = {UseGateway: self._tui}
        self._marks: dict[int, tuple[SignedInDevice, float]] = {}  # device and time of each request
        self._seats: dict[SignedInDevice, _TuiState] = {}
        self.there: dict[int, _EchoGateway] = {}  # all that ever ran, by pid
        crowd.listeners.append(self._on_device_message)
        self.world.home.programs[GATEWAY] = lambda child: _EchoGateway(child, self)

    def on_gateway_request(self, mark: int) -> None:
        """Count a request that a gateway received; if it is one of these users, check that it may use the channel."""
        self.world.count("requests to gateways")
        if mark not in self._marks:
            return  # a request of another actor, which checks it
        device, sent = self._marks[mark]
        if device.session.lacks("tui", self.world.wall, sent, self.world.sim.now):
            violated(Invariant.LIVE_GRANT, f"a gateway was asked by {device.session.prefix}, which holds no tui grant")

    def _tui(self, step: UseGateway) -> None:
        if not self.crowd.open:
            return
        device = self.crowd.open[step.socket % len(self.crowd.open)]
        kind = step.action % 8
        if not self._seats.get(device) or kind == 0:
            self._seats.setdefault(device, _TuiState())
            device.talker.send_envelope("tui", "tui.attach", {"cols": 80, "rows": 24})
        methods = {1: ("die",), 2: ("flood", "say"), 3: ("noise",), 4: ("flood", "die"), 6: ("flood", "die")}.get(
            kind, ("say", "say")
        )
        for method in methods:
            self._send_request(device, method)
        if kind == 5:
            device.talker.send_envelope("tui", "tui.detach", {})

    def _send_request(self, device: SignedInDevice, method: str) -> None:
        mark = self.crowd.next_number()
        self._marks[mark] = (device, self.world.sim.now)
        self._seats[device].asked[f"r{mark}"] = mark
        request = {"jsonrpc": "2.0", "id": f"r{mark}", "method": method, "params": {"mark": mark}}
        device.talker.send_envelope("tui", "tui.rpc.request", request)

    def _on_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        if message.get("channel") != "tui":
            return
        seat, payload = self._seats.setdefault(device, _TuiState()), message["payload"]
        if "line" in payload:
            self._check_line(device, *payload["line"])
        match message["type"]:
            case "tui.attached":
                seat.attached += 1
                seat.pid = payload["pid"]
            case "tui.error":
                seat.lost += 1
                if seat.lost > seat.attached:
                    violated(Invariant.TUI_ERROR, f"{device.name}: {payload} and no gateway had started")
                gateway = self.there[seat.pid]
                if gateway.told < gateway.said:
                    so = f"{gateway.told} of its {gateway.said} lines were told"
                    violated(Invariant.TUI_ERROR, f"{device.name}: {payload}, and {so}")
            case "tui.rpc.response":
                mark = seat.asked.pop(payload["id"], None)
                if mark is None:
                    violated(Invariant.ONE_ANSWER, f"{device.name} is answered {payload!r:.100} twice, or unasked")
                if "error" not in payload and payload["result"] != {"mark": mark}:
                    violated(Invariant.OWN_BYTES, f"{device.name} asked {mark} and is answered {payload!r:.100}")
            case "tui.rpc.event":
                mark = payload["params"].get("mark")
                if mark is not None and self._marks[mark][0] is not device:
                    violated(Invariant.OWN_BYTES, f"{device.name} is told {payload!r:.100} of another gateway")
            case _:
                violated(Invariant.STATUS, f"{device.name} is told {message!r:.100}")

    def _check_line(self, device: SignedInDevice, pid: int, number: int) -> None:
        gateway = self.there[pid]
        if number != gateway.told + 1:
            violated(Invariant.TUI_ERROR, f"{device.name} is told line {number} of gateway {pid} after {gateway.told}")
        gateway.told = number
