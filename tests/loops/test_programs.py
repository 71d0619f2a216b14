"""Terminals and the TUI on a simulated host with scripted programs: what takes minutes, must be exact, goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import frozen

from runtimes.sim.child import WINDOW, Child
from runtimes.sim.faults import Faults
from runtimes.sim.network import Network
from runtimes.sim.world import World as Simulation
from svc_proto.commands import SignalName
from tests.loops.programs import AGENT, SHELL, TmuxServer, install
from tests.loops.shells import Desk
from tests.loops.virtual import VirtualWorld
from tests.loops.wires import Ws
from tests.loops.world import bearer
from tests.plan import some

SEEDS = range(16)
ROUNDS = 250
CALM = 150.0  # s: a hung socket is found after 50 s
GRANTS = {"terminal": 0, "tui": 0, "chat": 0, "bridge": 0}


@frozen
class Scene:
    """A relay on a host with programs."""

    world: VirtualWorld
    tmux: TmuxServer | None

    def desk(self, name: str = "Desk", **meta: Any) -> Desk:
        return Desk(self.world.pair(name, **{"grants": GRANTS, **meta}))

    def back(self, token: str) -> Desk:
        """A client that comes back with its token."""
        ws = self.world.websocket()
        assert ws.sign_in(session_token=token)["type"] == "auth.ok"
        return Desk(ws)

    @property
    def children(self) -> list[Child]:
        return self.world.relay_host.children

    def settle(self, seconds: float = 0.1) -> None:
        self.world.pass_time(seconds)


def opened(kind: str, simulation: Simulation | None = None, seed: int = 0) -> Scene:
    world = VirtualWorld(seed, simulation=simulation)
    tmux = install(world.relay_host, tmux=kind == "tmux")
    world.start_relay(user_shell=SHELL, tui_command=(AGENT,), durable=True)
    return Scene(world, tmux if kind == "tmux" else None)


@pytest.fixture(params=["plain", "tmux"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = opened(request.param)
    yield made
    made.world.close()
    made.settle(5.0)
    assert made.children == []


@pytest.fixture
def plain() -> Iterator[Scene]:
    made = opened("plain")
    yield made
    made.world.close()
    made.settle(5.0)
    assert made.children == []


# --- terminals ------------------------------------------------------------------------------------------------------


def test_a_reader_that_stops_for_an_hour_loses_nothing(scene: Scene) -> None:
    """It reads no byte meanwhile, and says only that it is there, as ours does (`Socket.hold`)."""
    desk = scene.desk()
    desk.attach()
    desk.type("seq 80000; echo o''ff\r")
    desk.ws.wire.pause()
    for _ in range(360):
        scene.world.pass_time(10.0)
        desk.ws.ping()
    shown = desk.until("off\r\n").split("\r\n")
    first = shown.index("1")
    assert shown[first : first + 80_000] == [str(number) for number in range(1, 80_001)]


@pytest.mark.parametrize("leave", ["abort", "close", "kill"])
def test_the_client_or_the_relay_goes(scene: Scene, leave: str) -> None:
    """A bare shell is hung up; one in tmux lives on, and is found again by a relay that was started anew."""
    desk = scene.desk()
    token = desk.ws.token
    desk.attach()
    desk.run("KEPT=value")
    (child,) = scene.children
    if leave == "kill":
        scene.world.relay.kill()
        scene.world.relay.restart()
    else:
        getattr(desk.ws.wire, leave)()
    scene.settle()
    assert scene.children == []
    assert child.signals == [SignalName.HANGUP]
    desk = scene.back(token)
    again = desk.attach()
    if scene.tmux is None:
        assert (again["reattach"], again.get("replay")) == (False, None)
    else:
        assert again["reattach"] is True
        assert "KEPT=value" in again["replay"]
        desk.type('echo "it is $KEPT"\r')
        desk.until("it is value")


def test_a_flood_that_nobody_reads_stops_at_its_window(plain: Scene) -> None:
    phone, noisy = plain.world.fake_phone(), plain.desk("Noisy")
    noisy.attach()
    noisy.type("yes\r")
    noisy.until("y\r\ny\r\n")
    (child,) = plain.children
    noisy.ws.wire.pause()
    plain.settle(2.0)
    held = child.output.held
    assert 0 < held < 2 * WINDOW  # it waits
    for _ in range(20):
        calling = plain.world.client().begin("GET", "/ping", headers=bearer(phone.token))
        began = plain.world.clock()
        phone.respond(phone.command()["request_id"], {})
        assert calling.finish().status == 200
        assert plain.world.clock() - began < 0.1
        plain.settle(1.0)
    assert child.output.held == held
    noisy.type("\x03")
    assert "after" in noisy.run("echo after")


# --- the TUI --------------------------------------------------------------------------------------------------------


def attach(ws: Ws) -> int:
    """Attach an agent gateway; its process id."""
    ws.say("tui", "tui.attach", {"cols": 80, "rows": 24})
    message = ws.hear()
    assert message["type"] == "tui.attached", message
    pid: int = message["payload"]["pid"]
    assert ws.hear()["payload"]["params"]["type"] == "gateway.ready"
    return pid


def call(ws: Ws, method: str, **params: object) -> dict[str, Any]:
    """Call a method; the payload of the next message."""
    ws.say("tui", "tui.rpc.request", {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params})
    payload: dict[str, Any] = ws.hear()["payload"]
    return payload


@pytest.fixture
def tui(plain: Scene) -> tuple[Scene, Ws, Child]:
    """A client with a gateway."""
    ws = plain.desk().ws
    pid = attach(ws)
    (child,) = plain.children
    assert child.pid == pid
    return plain, ws, child


@pytest.mark.parametrize("how", ["revoke", "expire", "abort", "detach", "kill"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_gateway_is_reaped(plain: Scene, how: str, stubborn: bool) -> None:
    ws = plain.desk(ttl_seconds=20).ws
    attach(ws)
    (child,) = plain.children
    if stubborn:
        call(ws, "stubborn")
    match how:
        case "revoke":
            assert plain.world.http("DELETE", f"/sessions/{ws.token[:8]}").json["ok"] is True
            assert ws.wait_closed().code == 1008
        case "expire":
            assert ws.wait_closed(25.0).code == 1008
        case "abort":
            ws.wire.abort()
        case "detach":
            ws.say("tui", "tui.detach")
        case _:
            plain.world.relay.kill()
            plain.world.relay.restart()
    plain.settle(1.0)
    assert child.alive is (stubborn and how != "kill")  # its input has ended with the relay
    plain.settle(1.5)  # 2 s from SIGTERM to SIGKILL
    assert not child.alive
    assert plain.children == []


# --- bad days -------------------------------------------------------------------------------------------------------


class Visitor:
    """A client that attaches, types, is cut off and comes back, as chance has it."""

    def __init__(self, scene: Scene, token: str) -> None:
        self._scene = scene
        self._token = token
        self._ws: Ws | None = None

    def act(self) -> None:
        """Do something; what the network makes of it does not count."""
        rng = self._scene.world.simulation.rng
        if self._ws is None or self._ws.wire.reset or self._ws.wire.eof:
            self._connect()
            return
        ws, name = self._ws, f"t{rng.randrange(3)}"
        match rng.randrange(10):
            case 0 | 1:
                ws.say("terminal", "terminal.attach", {"session_name": name, "cols": rng.randrange(1, 200)})
            case 2:
                ws.say(
                    "terminal", "terminal.input", {"data": rng.choice(["seq 5000\r", "sleep\r", "\x03", "exit 0\r"])}
                )
            case 3:
                ws.say("terminal", "terminal.resize", {"cols": rng.randrange(1, 200), "rows": 5})
            case 4:
                ws.say("terminal", rng.choice(["terminal.detach", "terminal.kill", "terminal.list"]), {})
            case 5:
                ws.say("tui", "tui.attach", {})
            case 6:
                method = rng.choice(["echo", "crash", "stubborn", "flood"])
                request = {"id": "r", "method": method, "params": {"count": 50, "size": 5000}}
                ws.say("tui", "tui.rpc.request", request)
            case 7:
                ws.say("tui", "tui.detach", {})
            case 8:
                ws.wire.pause()  # and reads no more
            case _:
                ws.wire.abort()
                self._ws = None

    def _connect(self) -> None:
        self._ws = None
        try:
            ws = self._scene.world.websocket()
            ws.sign_in(session_token=self._token)
        except (ConnectionError, TimeoutError, AssertionError):
            return
        self._ws = ws


@pytest.mark.parametrize("seed", some(SEEDS))
def test_after_a_storm(seed: int) -> None:
    """Faults of every kind, kills of the relay included: afterwards terminals and gateways work, and none is left."""
    simulation = Simulation(seed, network=Network(chunking=0.5, jitter=5.0))
    scene = opened("tmux" if seed % 2 else "plain", simulation, seed)
    world = scene.world
    visitors = [Visitor(scene, scene.desk(name).ws.token) for name in ("One", "Two")]
    last = scene.desk("Last").ws.token
    simulation.faults = Faults.some(3.0)
    for number in range(ROUNDS):
        simulation.rng.choice(visitors).act()
        world.pass_time(simulation.rng.choice([0.0, 0.01, 0.5, 3.0]))
        if number in (80, 160) and seed % 3 == 0:
            world.relay.kill()
            world.revive(world.relay)
    simulation.calm()
    world.pass_time(CALM)
    for token in (visitor._token for visitor in visitors):
        assert world.http("DELETE", f"/sessions/{token}").status in (200, 404)
    world.pass_time(5.0)
    assert scene.children == []
    desk = scene.back(last)
    desk.attach("late")
    assert "fine" in desk.run("echo fine", "late")
    attach(desk.ws)
    assert call(desk.ws, "echo", fine=True)["result"] == {"fine": True}
    assert not [line for process in world.relay_host.processes for line in process.logs if line.event == "bug"]
    assert world.relay.stop(5.0) == 0
    world.pass_time(5.0)
    assert scene.children == []
