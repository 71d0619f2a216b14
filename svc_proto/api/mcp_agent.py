"""The agent as an MCP server: the tool `ask` runs a turn and reports its text as progress; chats are resources.

There are no approval requests: a tool call that needs one is refused.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Protocol, cast

from svc_proto.agent.interface import TextDelta, ToolCallStarted
from svc_proto.agent.tools.tool import Arguments, Tool, schema
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.store_requests import GetChat, ListChats, ListMessages
from svc_proto.api.chat.views import iso
from svc_proto.api.projections.turn_events import TurnStreamEvent
from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.api.runs.streaming import join_system_prompt
from svc_proto.api.runs.turn_execution import TurnRequest
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused, ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import AnonymousType
from svc_proto.mcp.server_features import Content, ProgressCallback, ResourceTemplate, ServerFeatures, ServerTool
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.mcp.subscriptions import Resource
from svc_proto.schema.json_object import content_text
from svc_proto.service_clients.authority import OWNER, Authority

__all__ = ["agent_features", "agent_server"]

LISTED = 100  # chats
SHOWN = 200  # messages of a chat, the newest
PROGRESS_INTERVAL = 0.5  # s between two progress notifications
URI = "chat://sessions"
JSON = "application/json"
INSTRUCTIONS = (
    "The tool ask gives a message to the agent on the user's own host: it has its own tools, a phone among them, its "
    "memory and its chats. Go on in a chat by the session that an answer names."
)
_CHAT = re.compile(re.escape(URI) + r"/([^/?#]{1,200})")


class AgentPort(TurnPort, Protocol):
    """Members of the API server that the MCP tools of the agent use."""

    def authority_of(self, caller: AnonymousType | str | None) -> Authority:
        """Return the authority of a principal: that of a pairing's API key, or all powers for any other value."""


def agent_server(api: AgentPort) -> McpHttpServer:
    """Create the MCP server at `/mcp`, which offers the agent's features to each principal."""
    return McpHttpServer(
        api.engine, lambda principal: agent_features(api, api.authority_of(cast("str | None", principal)))
    )


def agent_features(api: AgentPort, authority: Authority = OWNER) -> ServerFeatures:
    """Return the tools and resources of the agent for a principal of this authority."""
    agent = _AgentTools(api, authority)
    tool = Tool(
        name="ask",
        description="Ask the agent, or have it do something. It answers when it is done, which may take minutes.",
        parameters=schema(
            ("message",),
            message={"type": "string", "description": "what to say to the agent"},
            session={"type": "string", "description": "the chat to go on in; a new one unless given"},
        ),
        run=agent.answer_tool,
    )
    asking = ServerTool(
        tool=tool, title="Ask", reads_only=False, destructive=True, run=agent.run, run_with_progress=agent.run
    )
    chats = Resource(
        uri=URI, name="sessions", description="The chats, last active first.", media_type=JSON, read=agent.chats
    )
    chat = ResourceTemplate(
        uri=f"{URI}/{{id}}", name="session", description="The messages of a chat.", media_type=JSON, find=agent.find
    )
    return ServerFeatures(
        name=f"{api.config.brand.name}-agent",
        title="Agent",
        version=api.config.version,
        instructions=INSTRUCTIONS,
        tools=(asking,),
        resources=(chats,),
        templates=(chat,),
    )


class _AgentTools:
    def __init__(self, api: AgentPort, authority: Authority) -> None:
        self._api = api
        self._authority = authority

    # --- tool ---

    def answer_tool(self, arguments: Arguments) -> Flow[str]:
        """Run a turn; return the text of the answer. Raises `ToolError` as `run` does."""
        return str((yield from self.run(arguments))[0]["text"])

    def run(self, arguments: Arguments, on_text: ProgressCallback = lambda text: None) -> Flow[Sequence[Content]]:
        """Run a turn; return the text of the answer, and a text that names the session.

        `on_text` is called with new text and the names of started tools, every half second at most. Raises `ToolError`
        if the turn is refused, fails or is stopped, or if the named session does not exist.
        """
        api = self._api
        reporter = _ProgressReporter(api.engine, on_text)
        try:
            turn_request = yield from self._build_turn_request(
                str(arguments["message"]), str(arguments.get("session", ""))
            )
            run = yield from api.runs.start(turn_request)
            assert isinstance(run, Run)  # without a request there is none to forward
            run.observe(reporter.add_event)
            ended = yield from run.wait_ended()
        except Refused as refused:
            raise ToolError(refused.message) from None
        finally:
            reporter.close()
        if ended.error is not None or ended.interrupted:
            raise ToolError(ended.error or "the turn was stopped")
        words = [ended.content, f"(session: {turn_request.session_id})"]
        return [{"type": "text", "text": text} for text in words]

    def _build_turn_request(self, message: str, session: str) -> Flow[TurnRequest]:
        api = self._api
        settings = yield from api.settings()
        stored = (yield from api.run_store_request(GetChat(id=session))) if session else None
        if session and stored is None:
            raise ToolError("there is no such session")
        now = api.engine.now.wall
        identity = session or new_uuid(api.engine.entropy)
        new = ChatSession(id=identity, started_at=now, updated_at=now, last_active=now, model=settings.name)
        chat = stored or new
        return TurnRequest(
            run_id=api.runs.new_id(),
            session_id=identity,
            prompt=message,
            system=join_system_prompt(chat.system_prompt or settings.system, settings.prompt_for(None)),
            endpoint=settings.endpoint,
            model=settings.name,
            max_tokens=settings.max_tokens,
            title=chat.title,
            create=None if session else new,
            stops_alone=True,
            authority=self._authority,
        )

    # --- chats ---

    def chats(self) -> Flow[str]:
        """Return the 100 chats that were active last, and how many there are, as JSON.

        Archived chats and children are left out.
        """
        page = yield from self._api.run_store_request(ListChats(limit=LISTED))
        rows = [{"id": chat.id, "title": chat.title, "last_active": iso(chat.last_active)} for chat in page.sessions]
        return strict_json.dumps({"sessions": rows, "total": page.total})

    def find(self, uri: str) -> Resource | None:
        """Return the resource of a chat, whether the chat exists or not; None for another URI."""
        named = _CHAT.fullmatch(uri)
        if named is None:
            return None
        read = partial(self._messages, named[1])
        return Resource(uri=uri, name=named[1], description="", media_type=JSON, read=read)

    def _messages(self, session: str) -> Flow[str]:
        rows = yield from self._api.run_store_request(ListMessages(session_id=session, limit=SHOWN, latest=True))
        if rows is None:
            raise ToolError("there is no such session")
        views = [{"role": row.role, "content": content_text(row.content), "at": iso(row.timestamp)} for row in rows]
        return strict_json.dumps({"session": session, "messages": views})


class _ProgressReporter:
    """Reporter of a turn's text: at most one piece every half second."""

    def __init__(self, engine: Engine, on_text: ProgressCallback) -> None:
        self._engine = engine
        self._on_text = on_text
        self._closed = False
        self._pieces: list[str] = []
        self._timer = engine.timers.timer(self._round)

    def add_event(self, event: TurnStreamEvent) -> None:
        """Add the text of an event, or the name of a tool that starts, to the next piece. After `close` do nothing."""
        if self._closed:  # a stopped turn may emit events before its end
            return
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)
        elif isinstance(event, ToolCallStarted):
            self._pieces.append(f"[{event.call.name}]")
        if self._timer.when is None:
            self._round()

    def close(self) -> None:
        """Stop reporting: the turn has ended, or its call was cancelled."""
        self._closed = True
        self._timer.retire()

    def _round(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces:
            self._timer.set(self._engine.now.mono + PROGRESS_INTERVAL)
            self._on_text("".join(pieces))
