"""Test of the end of a session."""

import sys

from runtimes.sim.child import ScriptedProgram
from tests.loops.environment import Environment, bearer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.loops.terminal_client import runs

READY = (sys.executable, "-c", "import sys; print('{}', flush=True); sys.stdin.read()")


def is_running(world: Environment, pid: int) -> bool:
    if isinstance(world, SimulatedEnvironment):
        return any(child.pid == pid for child in world.relay_host.children)
    return runs(pid)


class ReadyProgram(ScriptedProgram):
    """Program of a simulated host that prints a line when it starts, and runs on."""

    def on_start(self) -> None:
        self.child.emit(b"{}\n")


def gateway_command(world: Environment) -> tuple[str, ...]:
    """Return the command of a gateway; on a simulated host, install it and a shell."""
    if isinstance(world, SimulatedEnvironment):
        world.relay_host.programs |= dict.fromkeys(("/bin/sh", "/bin/gateway"), ReadyProgram)
        return ("/bin/gateway",)
    return READY


def test_the_end_of_a_session_ends_its_sockets_and_its_work(world: Environment) -> None:
    world.start_relay(terminal_tmux=False, user_shell="/bin/sh", tui_command=gateway_command(world))
    phone, witness = world.fake_phone("Phone"), world.pair("Witness")
    ws = world.pair("Caller")
    ws.send_envelope("terminal", "terminal.attach", {"session_name": "main", "shell": "/bin/sh"})
    shell = ws.receive_message()["payload"]["pid"]
    ws.send_envelope("tui", "tui.attach", {})
    while (message := ws.receive_message())["type"] != "tui.attached":
        assert message["type"] == "terminal.output"
    gateway = message["payload"]["pid"]
    calling = world.client().begin("GET", "/screen", headers=bearer(ws.token))
    phone.command()
    assert is_running(world, shell)
    assert is_running(world, gateway)
    answer = world.http("DELETE", f"/sessions/{ws.token[:8]}", headers=bearer(witness.token))
    assert (answer.status, answer.json["revoked_self"]) == (200, False)
    answer = calling.finish()
    assert (answer.status, answer.code) == (401, "unauthorized")
    said = []
    while (message := ws.receive_message())["type"] != "error":
        said.append(message["type"])
    assert {*said} <= {"terminal.output", "tui.rpc.event"}
    assert (message["channel"], message["payload"]["error"]) == ("system", "session_ended")
    assert ws.wait_closed().code == 1008
    world.eventually(lambda: not is_running(world, shell))
    world.eventually(lambda: not is_running(world, gateway))
    for request in (("GET", "/ping"), ("GET", "/media/x"), ("POST", "/clipboard/inbox"), ("POST", "/media/upload")):
        assert world.http(*request, headers=bearer(ws.token)).status == 401
    assert world.websocket().sign_in(session_token=ws.token)["type"] == "auth.fail"
    witness.pong()  # and no other client is affected
    calling = world.client().begin("GET", "/ping", headers=bearer(witness.token))
    phone.respond(phone.command()["request_id"], {"fine": True})
    assert calling.finish().json == {"fine": True}
