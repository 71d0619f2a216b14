"""Slash commands: their catalogue, those that the gateway performs itself, and those that become prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.agent.builtin_commands import parse_command
from svc_proto.agent.memory import TARGETS, usage_of
from svc_proto.api.gateway.sessions import build_info
from svc_proto.api.gateway.settings import EFFORTS, NO_PERSONALITY, model_options
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.schema.gateway_rpc import NOT_A_COMMAND, RpcCall
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import METHOD_NOT_FOUND, RpcError

if TYPE_CHECKING:
    from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
    from svc_proto.api.gateway.live_session import LiveGateway, LiveSession
    from svc_proto.schema.api_types import ToolsetJson

__all__ = ["methods"]

# By category: the commands that `slash.exec` answers, and those that become prompts.
ANSWERED = (
    ("/help", "List the commands"),
    ("/status", "Show model, title and state of this chat"),
    ("/model", "Show the models that can be chosen"),
    ("/personality", "Show the personalities that can be chosen"),
    ("/reasoning", "Show the reasoning effort of this chat"),
    ("/tools", "List the agent's tools"),
    ("/skills", "List the agent's skills"),
    ("/memory", "Show the agent's notes"),
)
PROMPTS = (
    ("/phone", "Drive the phone: /phone ping, /phone tap text=Settings"),
    ("/screenshot", "Take a picture of the phone's screen"),
    ("/skill", "Show a skill: /skill NAME"),
    ("/mcp", "List the MCP servers; /mcp reload starts them anew"),
)
CATEGORIES = (("Chat", ANSWERED), ("Agent", PROMPTS))
MAX_SHOWN = 100  # names in one answer


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's methods for slash commands by name."""
    theme = _CommandMethods(gateway)
    return {
        "commands.catalog": theme.catalog,
        "slash.exec": theme.execute,
        "command.dispatch": theme.dispatch,
        "tools.list": theme.tools,
    }


class _CommandMethods:
    def __init__(self, gateway: LiveGateway) -> None:
        self._gateway = gateway
        self._outputs: dict[str, Callable[[LiveSession], Flow[str]]] = {
            "/help": self._help,
            "/status": self._status,
            "/model": self._model,
            "/personality": self._personality,
            "/reasoning": self._reasoning,
            "/tools": self._tools,
            "/skills": self._skills,
            "/memory": self._memory,
        }

    def catalog(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """List the commands, and by category also the first 100 skills, as `/skill NAME`."""
        skills = yield from self._gateway.api.parts.skills.list()
        of_skills = [[f"/skill {skill.name}", str(skill.row.get("description", ""))] for skill in skills[:MAX_SHOWN]]
        categories: list[dict[str, object]] = [
            {"name": name, "pairs": [list(pair) for pair in pairs]} for name, pairs in CATEGORIES
        ]
        if of_skills:
            categories.append({"name": "Skills", "pairs": of_skills})
        return {"pairs": [list(pair) for _, pairs in CATEGORIES for pair in pairs], "categories": categories}

    def execute(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Answer a command that the gateway performs itself.

        Any other command, and `/memory` with words, gets the error 4018.
        """
        name, _, rest = call.text("command").strip().partition(" ")
        output = self._outputs.get(name)
        if output is None or (name == "/memory" and rest.strip()):
            raise RpcError(NOT_A_COMMAND, f"{name[:40]} is none that is answered at once: dispatch it")
        session = yield from self._gateway.find(connection, call)
        return {"output": (yield from output(session))}

    def dispatch(self, connection: GatewayConnection, call: RpcCall) -> Result:
        """Return a listed command with its argument as a message that the client has to send as a prompt.

        Raises `RpcError` for any other command.
        """
        name, argument = call.text("name").strip().lstrip("/"), call.params.text("arg").strip()
        known = {word for word, _ in (*ANSWERED, *PROMPTS)}
        if f"/{name}" not in known:
            raise RpcError(METHOD_NOT_FOUND, f"no command /{name[:40]}")
        return {"type": "send", "message": f"/{name} {argument}".strip()}

    def tools(self, connection: GatewayConnection, call: RpcCall) -> Result:
        """List the toolsets with their tools."""
        toolbox = self._gateway.api.parts.toolbox
        return {"toolsets": [_toolset_row(row) for row in toolbox.toolsets()]}

    # --- answers ---

    def _help(self, session: LiveSession) -> Flow[str]:
        yield from ()
        return "\n".join(f"{name}: {text}" for _, pairs in CATEGORIES for name, text in pairs)

    def _status(self, session: LiveSession) -> Flow[str]:
        chat = yield from self._gateway.stored(session.id)
        info = yield from build_info(self._gateway, session, chat)
        lines = [
            f"Title: {info['title'] or 'none yet'}",
            f"Model: {info['model']} ({info['provider']})",
            f"Personality: {info['personality']}",
            f"Messages: {chat.message_count}",
            f"Tokens: {chat.input_tokens} in, {chat.output_tokens} out",
            f"State: {'a turn is under way' if info['running'] else 'idle'}",
        ]
        return "\n".join(lines)

    def _model(self, session: LiveSession) -> Flow[str]:
        chat = yield from self._gateway.stored(session.id)
        options = yield from model_options(self._gateway.api, chat.model or "")
        rows = JsonObject.of(options).objects("providers")
        names = [f"- {name} ({row.text('slug')})" for row in rows for name in row.texts("models")]
        return "\n".join([f"This chat uses {options['model']}. There are:", *names[:MAX_SHOWN]])

    def _personality(self, session: LiveSession) -> Flow[str]:
        settings = yield from self._gateway.api.settings()
        own = settings.personality if session.personality is None else session.personality
        names = ", ".join([NO_PERSONALITY, *settings.personalities][:MAX_SHOWN])
        return f"This chat uses {own or NO_PERSONALITY}. There are: {names}"

    def _reasoning(self, session: LiveSession) -> Flow[str]:
        yield from ()
        return f"The reasoning effort is {session.effort or 'that of the model'}. There are: {', '.join(EFFORTS)}"

    def _tools(self, session: LiveSession) -> Flow[str]:
        yield from ()
        return parse_command("/tools", self._gateway.api.parts.toolbox.tools).say

    def _skills(self, session: LiveSession) -> Flow[str]:
        skills = yield from self._gateway.api.parts.skills.list()
        lines = [f"- {skill.name}: {skill.row.get('description', '')}" for skill in skills[:MAX_SHOWN]]
        return "\n".join(lines) or "There are no skills."

    def _memory(self, session: LiveSession) -> Flow[str]:
        lines: list[str] = []
        for target in TARGETS:
            entries = yield from self._gateway.api.parts.memory.entries(target)
            if isinstance(entries, Failure):
                return "The memory cannot be read at the moment."
            lines += [f"{target} ({usage_of(target, entries)}):", *(f"- {entry}" for entry in entries)]
        return "\n".join(lines)


def _toolset_row(row: ToolsetJson) -> dict[str, object]:
    return {
        "name": row["name"],
        "description": row["description"],
        "tool_count": len(row["tools"]),
        "enabled": row["enabled"],
        "tools": [{"name": name, "description": row["descriptions"][name]} for name in row["tools"]],
    }
