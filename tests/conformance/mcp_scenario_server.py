"""MCP server of `svc_proto.mcp` with tools, resources and prompts for `@modelcontextprotocol/conformance`.

`python -m tests.conformance.echo_server --shop` runs it. Every program of this host has access, but no page with
another host name.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

from attrs import evolve

from svc_proto.agent.tools.tool import Arguments, Tool, schema
from svc_proto.basics.errors import Refused, ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.request_origin import is_local
from svc_proto.engine.router import Router
from svc_proto.mcp.server_features import (
    Content,
    ProgressCallback,
    Prompt,
    ResourceTemplate,
    ServerFeatures,
    ServerTool,
)
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.mcp.subscriptions import Resource
from svc_proto.wire.events import RequestHead
from tests.support.servers.scripted_service import ScriptedService, row

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
WAV = bytes.fromhex(  # one sample of silence
    "524946462600000057415645666d74201000000001000100401f0000803e00000200100064617461020000000000"
)
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def _text(text: str) -> Content:
    return {"type": "text", "text": text}


def _resource(uri: str, kind: str, text: str) -> Content:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


IMAGE: Content = {"type": "image", "data": b64encode(PNG).decode(), "mimeType": "image/png"}
AUDIO: Content = {"type": "audio", "data": b64encode(WAV).decode(), "mimeType": "audio/wav"}
EMBEDDED = _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
MIXED = _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
ANSWERS: dict[str, Sequence[Content] | ToolError] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [EMBEDDED],
    "test_multiple_content_types": [_text("Multiple content types test:"), IMAGE, MIXED],
    "test_error_handling": ToolError("This tool intentionally returns an error for testing"),
    "json_schema_2020_12_tool": [_text("taken")],
}


def _tool(name: str, answer: Sequence[Content] | ToolError) -> ServerTool:
    def run(arguments: Arguments) -> Flow[Sequence[Content]]:
        yield from ()
        if isinstance(answer, ToolError):
            raise answer
        return answer

    def unused(arguments: Arguments) -> Flow[str]:
        raise NotImplementedError

    shape = SCHEMA_2020 if name.startswith("json_schema") else schema(())
    tool = Tool(name=name, description=f"Scenario {name}.", parameters=shape, run=unused)
    return ServerTool(tool=tool, title=name, reads_only=True, destructive=False, run=run)


def _steps(arguments: Arguments, telling: ProgressCallback = lambda text: None) -> Flow[Sequence[Content]]:
    """Report progress in three steps, and return a text."""
    yield from ()
    for step in ("begun", "half", "done"):
        telling(step)
    return [_text("done")]


def _following() -> ServerTool:
    made = _tool("test_tool_with_progress", [])
    return evolve(made, run=_steps, run_with_progress=_steps)


def _find(uri: str) -> Resource | None:
    named = re.fullmatch("test://template/([^/]+)/data", uri)
    if named is None:
        return None
    return _listed(uri, named[1], "text/plain", f"Data of {named[1]}.")


def _listed(uri: str, name: str, kind: str, found: str | bytes) -> Resource:
    return Resource(uri=uri, name=name, description="A resource.", media_type=kind, read=partial(_read, found))


def _read(found: str | bytes) -> Flow[str | bytes]:
    yield from ()
    return found


def _never(tell: Callable[[], None]) -> Callable[[], None]:
    """Return the function that ends a watch on resources that never change: it does nothing."""
    return lambda: None


DATA = "test://template/{id}/data"
OFFER = ServerFeatures(
    name="conformance-shop",
    title="Shop",
    version="1",
    instructions="Test.",
    tools=(*(_tool(name, answer) for name, answer in ANSWERS.items()), _following()),
    templates=(
        ResourceTemplate(uri=DATA, name="template", description="Data by its id.", media_type="text/plain", find=_find),
    ),
    resources=(
        _listed("test://static-text", "text", "text/plain", "This is the content of the static text resource."),
        _listed("test://static-binary", "binary", "image/png", PNG),
        evolve(_listed("test://watched-resource", "watched", "text/plain", "watched"), watch=_never),
    ),
    prompts=(
        Prompt(name="test_simple_prompt", description="A text.", text="This is a simple prompt for testing."),
        Prompt(
            name="test_prompt_with_arguments",
            description="A text with blanks.",
            text="Prompt with arguments: arg1='{arg1}', arg2='{arg2}'",
            arguments={"arg1": "First test argument", "arg2": "Second test argument"},
        ),
    ),
)


class ScenarioServer(ScriptedService):
    """Engine service with the MCP server of the scenarios at `/mcp`."""

    def __init__(self) -> None:
        super().__init__(())

    def bind(self, engine: Engine) -> None:
        super().bind(engine)
        self._server = McpHttpServer(engine, lambda caller: OFFER)
        verbs = {"POST": self._server.post, "GET": self._server.get, "DELETE": self._server.delete}
        self.router = Router(row(verb, "/mcp", does, stops_with_client=True) for verb, does in verbs.items())

    def on_stopping(self) -> None:
        self._server.stop()

    def authorize(self, access: Enum, request: Request) -> object:
        """Allow programs of this host, and pages with its own names. Raise Refused (403) for others."""
        if not is_local(request):
            raise Refused(403, "loopback_only", "this is for programs on this host")
        request.credential_id = "any client"
        return None

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return `{"ok": false, "error": "<text>"}` with the status of the refusal."""
        return json_response(refused.status, {"ok": False, "error": refused.message}, refused.headers)
