"""Helpers for tests of the phone's tools: steps of one turn, and a phone with the limits of existing clients.

world = AgentHarness(phone=True, backend=StockPhone())
results = act(world, ("phone_open_app", {"package": "com.example.mail"}), ("phone_screen", {}))
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from clients.phone.emulator import EmulatedPhone
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from tests.agent.harness import AgentHarness
from tests.support.servers.model_server import calls, plain

__all__ = ["ScreenPhone", "Step", "StockPhone", "act", "backend_of", "lines_of", "screen_body", "showing", "unfenced"]

Call: TypeAlias = tuple[str, Any]
Phone = TypeVar("Phone", bound=EmulatedPhone)
Step: TypeAlias = "Call | Callable[[list[str]], Call]"  # a call, or a function of the results so far
OWN_MEMBERS = ("hintText", "checkable", "checked", "password", "more", "textLength")


def act(world: AgentHarness, *steps: Step) -> list[str]:
    """Run the tool calls `steps` in one turn, each in a model answer of its own; return the unfenced results."""
    results: list[str] = []

    def next_call(step: Step) -> Callable[[Any], Any]:
        def answer(asked: Any) -> Any:
            results[:] = [row["content"] for row in asked["messages"] if row["role"] == "tool"]
            return calls(step(results) if callable(step) else step)

        return answer

    world.host.events.clear()
    world.model.answers = [*map(next_call, steps), plain("Done.")]
    world.answer("Go")
    return [unfenced(finished.output) for finished in world.host.finished]


def unfenced(result: str) -> str:
    """Return a result without the lines that mark it as foreign content."""
    found = re.fullmatch(r"\[untrusted[^\n]*\]\n(.*)\n\[/untrusted\]", result, re.DOTALL)
    return result if found is None else found[1]


def backend_of(world: AgentHarness, kind: type[Phone]) -> Phone:
    """Return the phone's backend; fail if it is not of this class."""
    assert isinstance(world.backend, kind)
    return world.backend


def lines_of(result: str) -> list[str]:
    """Return the lines of the screen in a result, without its head."""
    _, _, block = f"\n{result}".partition("\nscreen ")
    return block.splitlines()[1:]


class StockPhone(EmulatedPhone):
    """Emulated phone with the limits of existing Android clients (wire bridge 3.2, 3.5).

    Its screens lack `locked`, and their nodes the members in `OWN_MEMBERS`. It ignores `if_hash`, `clear` and `exact`,
    and refuses the keys Enter and wake-up.
    """

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        body = {name: value for name, value in command.body.items() if name not in ("if_hash", "clear", "exact")}
        if command.path == "/press_key" and body.get("key") in ("enter", "wakeup"):
            return CommandReply(400, {"error": "unsupported key"})
        reply = super().execute(PhoneCommand(command.method, command.path, body), now)
        if command.path != "/screen" or not isinstance(reply, CommandReply) or reply.status != 200:
            return reply
        found: Any = dict(reply.result)
        found.pop("locked")
        nodes = found["nodes"]
        found["nodes"] = [{name: node[name] for name in node if name not in OWN_MEMBERS} for node in nodes]
        return CommandReply(200, found)


def screen_body(*nodes: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """Return an answer to `GET /screen`; nodes without `at` stand below each other, 100 px high."""
    rows = []
    for place, node in enumerate(nodes):
        left, top, right, bottom = node.get("at", (0, 100 * place, 1000, 100 * place + 100))
        rows.append(
            {
                "nodeId": f"w0:{place}",
                "className": "android.widget.TextView",
                "bounds": {"left": left, "top": top, "right": right, "bottom": bottom},
                **{name: value for name, value in node.items() if name != "at"},
            }
        )
    bounds = {"left": 0, "top": 0, "right": 1000, "bottom": 2000}
    return {"packageName": "com.example.app", "rootBounds": bounds, "nodes": rows, "truncated": False, **more}


class ScreenPhone(StockPhone):
    """Emulated phone that always shows the screen `body`, answers keys with `keys`, and all else with success."""

    body: dict[str, object] | None = None
    keys = CommandReply(400, {"error": "unsupported key"})

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/screen":
            return CommandReply(200, self.body or {})
        if command.path == "/press_key":
            return self.keys
        return CommandReply(200, {"ok": True})


def showing(*nodes: dict[str, object], **more: object) -> AgentHarness:
    backend = ScreenPhone()
    backend.body = screen_body(*nodes, **more)
    return AgentHarness(phone=True, backend=backend)
