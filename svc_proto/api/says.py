"""What each route of the API says of itself, for its document: one row for each row of the route tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from svc_proto.about.openapi import COMMON, STREAM
from svc_proto.about.says import DoorWords, Manual, Says, Shape, Table
from svc_proto.api import shapes
from svc_proto.api import shapes_turns as turns
from svc_proto.api.access import Access
from svc_proto.api.errors import MANAGEMENT
from svc_proto.schema.chat_events import EVENTS
from svc_proto.schema.rpc_shapes import RpcMessage

__all__ = ["MANUAL"]

UNKNOWN = {404: "there is no such session"}
APART = {503: "another node may have it, and cannot be reached"}
GONE = {404: "there is no such run, or it ended a while ago", **APART}
LOST = {404: "there is no such response", **APART}
TURN = {
    404: "there is no such session",
    429: "as many turns run as may",
    502: "the agent gave no answer",
    503: "the server is shutting down, or its store or the node that has the session does not answer",
}
RUN = {429: "as many turns run as may", 502: "the agent gave no answer", 503: TURN[503]}
HEAD = "Its data has `session_id`, `run_id`, `seq` and `ts` before the members that are shown here. "
KEPT = "A client that goes away does not end the turn."

SAYS: Table = {
    **COMMON,
    "Status": {
        "GET /health": Says("The server answers", shapes.Health),
        "GET /v1/health": Says("The same", shapes.Health),
        "GET /health/detailed": Says("How its parts are", shapes.DetailedHealth),
        "GET /v1/models": Says("The models that can be named", shapes.Models),
        "GET /v1/models/{id}": Says("One of them", shapes.Model, no={404: "there is no such model"}),
        "GET /v1/capabilities": Says("What clients may look for", shapes.Capabilities),
    },
    "Sessions": {
        "GET /api/sessions": Says("Chats", shapes.SessionPage, query=shapes.SessionQuery),
        "POST /api/sessions": Says(
            "Make a chat",
            shapes.SessionAnswer,
            201,
            body=shapes.NewSession,
            no={409: "a session with this id exists"},
        ),
        "GET /api/sessions/search": Says("Messages by their words", shapes.Hits, query=shapes.SearchQuery),
        "GET /api/sessions/{id}": Says("A chat", shapes.SessionAnswer, no=UNKNOWN),
        "PATCH /api/sessions/{id}": Says("Change a chat", shapes.SessionAnswer, body=shapes.SessionChange, no=UNKNOWN),
        "DELETE /api/sessions/{id}": Says("Delete a chat", None, 204, no={**UNKNOWN, **APART}),
        "GET /api/sessions/{id}/messages": Says(
            "What was said", shapes.Messages, query=shapes.MessageQuery, no=UNKNOWN
        ),
        "POST /api/sessions/{id}/fork": Says(
            "Copy a chat",
            shapes.SessionAnswer,
            201,
            body=shapes.Fork,
            no={**UNKNOWN, 409: "a session with this id exists"},
        ),
    },
    "Turns": {
        "POST /api/sessions/{id}/chat": Says(
            "Say something, and wait for the answer", turns.TurnAnswer, body=turns.Turn, no=TURN, details=KEPT
        ),
        "POST /api/sessions/{id}/chat/stream": Says(
            "Say something, and be told of the turn as it goes",
            {STREAM: str},
            body=turns.Turn,
            no=TURN,
            events=EVENTS,
            details=HEAD + KEPT,
        ),
        "HEAD /api/sessions/{id}/chat/stream": Says("Whether there is such a route; the session may be any"),
        "POST /v1/chat/completions": Says(
            "A chat completion, as OpenAI has it",
            {"application/json": turns.Completion, STREAM: str},
            body=turns.CompletionBody,
            headers=turns.CompletionHeaders,
            no=RUN,
            events=turns.COMPLETION_EVENTS,
            details="With `stream` there are chunks, and `[DONE]` at last. A client that goes away ends the turn.",
        ),
        "HEAD /v1/chat/completions": Says("Whether there is such a route"),
    },
    "Runs": {
        "POST /v1/runs": Says(
            "Begin a run",
            turns.RunAccepted,
            202,
            body=turns.RunBody,
            also={200: {STREAM: str}},
            no=RUN,
            events=turns.RUN_EVENTS,
            details="200 and a stream with `stream`, or where `text/event-stream` is what is accepted.",
        ),
        "HEAD /v1/runs": Says("Whether the answer can be a stream"),
        "GET /v1/runs/{run_id}": Says("How it is doing", turns.Run, no=GONE),
        "GET /v1/runs/{run_id}/events": Says(
            "What happens in it, for one reader", {STREAM: str}, no=GONE, events=turns.RUN_EVENTS
        ),
        "POST /v1/runs/{run_id}/stop": Says("Stop it", turns.RunStopping, no=GONE),
        "POST /v1/runs/{run_id}/approval": Says(
            "Answer its question",
            turns.ApprovalAnswer,
            body=turns.ApprovalBody,
            no={**GONE, 409: "nothing is asked, or not this"},
        ),
    },
    "Responses": {
        "POST /v1/responses": Says(
            "A response, as OpenAI has it",
            {"application/json": turns.Response, STREAM: str},
            body=turns.ResponseBody,
            headers=turns.ResponseHeaders,
            no={**RUN, 404: "there is no such response"},
            events=turns.RESPONSE_EVENTS,
            details="With `stream` it is a stream of events.",
        ),
        "GET /v1/responses/{response_id}": Says("One that was stored", turns.Response, no=LOST),
        "DELETE /v1/responses/{response_id}": Says("Forget it", turns.ResponseDeleted, no=LOST),
    },
    "MCP": {
        "POST /mcp": Says(
            "A message of the Model Context Protocol",
            {"application/json": RpcMessage, "text/event-stream": str},
            body=RpcMessage,
            also={202: None},
            no={406: "Accept has to have both types", 415: "a message is application/json"},
            details="Streamable HTTP: docs/reference/mcp.md.",
        ),
        "GET /mcp": Says("What is said without a request", {"text/event-stream": str}),
        "DELETE /mcp": Says("End the session", None, 204),
    },
    "Management": {
        "GET /api/config": Says("How the agent is configured", shapes.Config),
        "PATCH /api/config": Says(
            "Change its model",
            shapes.ConfigChanged,
            body=shapes.ConfigChange,
            no={500: "the configuration file cannot be changed"},
        ),
        "GET /api/memory": Says(
            "The agent's notes", shapes.Memory, query=shapes.MemoryQuery, no={503: "the notes cannot be read"}
        ),
        **{
            f"{method} /api/memory": Says(
                summary,
                shapes.MemoryChanged,
                body=body,
                also={400: shapes.MemoryRefused | shapes.ShortRefusal, 503: shapes.MemoryRefused},
            )
            for method, summary, body in (
                ("POST", "Add a note", shapes.Note),
                ("PATCH", "Replace a note", shapes.NoteChange),
                ("DELETE", "Remove a note", shapes.NoteGone),
            )
        },
        "GET /api/skills": Says("The agent's skills", shapes.Skills, query=shapes.SkillsQuery),
        "GET /api/skills/{name}": Says("A skill, or a file of it", shapes.Skill, query=shapes.SkillQuery),
        "GET /api/skills/toggle": Says("A skill of this name", shapes.Skill, query=shapes.SkillQuery),
        "PUT /api/skills/toggle": Says(
            "Skills cannot be switched", shapes.NotImplementedHere, 501, body=dict[str, object]
        ),
        "GET /v1/skills": Says("The agent's skills, as a list", shapes.SkillRows),
        "GET /v1/toolsets": Says("The agent's tools", shapes.Toolsets),
        "GET /api/available-models": Says(
            "What a provider offers", shapes.AvailableModels, query=shapes.AvailableQuery
        ),
        "GET /api/mcp-servers": Says("The MCP servers that the agent uses", shapes.McpServers),
        "POST /api/mcp-servers/reload": Says("Begin anew with all of them", shapes.McpServers),
        "POST /api/key/reload": Says(
            "Take the key that the files hold now",
            shapes.KeyReloaded,
            no={409: "the files hold none that can be taken"},
        ),
    },
}
DOORS: Mapping[Enum, DoorWords] = {
    Access.PUBLIC: DoorWords("For anybody."),
    Access.MONITOR: DoorWords("For programs of this host, or whoever shows `SVC_METRICS_TOKEN`.", ("", "metrics")),
    Access.HERE_OR_KEY: DoorWords("For programs of this host, or whoever shows a key.", ("", "key")),
    Access.KEY: DoorWords(
        "For whoever shows the key, or one of a pairing's own; without a key, for anybody.", ("key",)
    ),
    Access.MAIN_KEY: DoorWords("For whoever shows the main key.", ("key",)),
}
PLACES = {
    "id": "its id",
    "name": "its name",
    "run_id": "the run, as its answer or the header `X-Svc-Run-Id` named it",
    "response_id": "the response",
}


def _refusal(path: str) -> tuple[str, Shape]:
    if path == "/mcp":
        return "McpRefusal", RpcMessage | shapes.Refusal
    return ("ShortRefusal", shapes.ShortRefusal) if path.startswith(MANAGEMENT) else ("Refusal", shapes.Refusal)


MANUAL = Manual(
    title="svc-relay API",
    description="An agent that answers, with chats, runs, tools, notes and skills. Errors are as OpenAI writes them. "
    "What answers GET answers HEAD as well. Pages of other sites are answered 403 without a body, unless allowed.",
    says=SAYS,
    doors=DOORS,
    schemes={
        "key": {"type": "http", "scheme": "bearer", "description": "`API_SERVER_KEY`, or a pairing's own key"},
        "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
    },
    places=PLACES,
    refusal=_refusal,
)
