"""Demonstration tools of the built-in agent, for the display of tool events. Models are not offered them."""

from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep

__all__ = ["demo_tools"]

MAX_SECONDS = 10  # s, in the schema of the demonstration tool


def demo_tools(engine: Engine) -> Toolset:
    """Return the toolset of `demo_wait` (waits), `demo_fail` (fails) and `demo_ask` (needs an approval)."""

    def pause(arguments: Arguments) -> Flow[str]:
        seconds = int(str(arguments.get("seconds", 1)))
        yield from sleep(engine, float(seconds))
        return f"waited {seconds} s"

    def fail(arguments: Arguments) -> Flow[str]:
        yield from sleep(engine, 0.0)
        raise ToolError("this tool always fails, to show how that looks")

    def confirm(arguments: Arguments) -> Flow[str]:
        yield from sleep(engine, 0.0)
        return "you allowed it"

    seconds = {"type": "integer", "minimum": 0, "maximum": MAX_SECONDS}
    nothing = schema()
    asks = "A demonstration: it does nothing."
    tools = (
        Tool(name="demo_wait", description="Wait.", parameters=schema(seconds=seconds), run=pause),
        Tool(name="demo_fail", description="Fail.", parameters=nothing, run=fail),
        Tool(name="demo_ask", description="Ask first.", parameters=nothing, run=confirm, needs_approval=asks),
    )
    return Toolset(name="demo", label="Demonstration", description="Shows tool events", tools=tools, offered=False)
