"""Descriptions of the API's routes for its OpenAPI document: one row for each row of the route tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from svc_proto.api.access import Access
from svc_proto.api.errors import MANAGEMENT
from svc_proto.api.openapi import run_types as turns
from svc_proto.api.openapi import types
from svc_proto.openapi.document import COMMON, STREAM
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc, OperationTable, SchemaType
from svc_proto.schema.chat_events import EVENTS
from svc_proto.schema.json_rpc_types import RpcMessageJson

__all__ = ["MANUAL"]

UNKNOWN = {404: "No session has this id."}
APART = {503: "The node that may hold it cannot be reached."}
GONE = {404: "No run has this id, or it ended too long ago.", **APART}
LOST = {404: "No response has this id.", **APART}
TURN = {
    404: "No session has this id.",
    429: "The limit of concurrent turns is reached.",
    502: "The agent gave no answer.",
    503: "The server is shutting down, or its store or the node of the session does not answer.",
}
RUN = {429: "The limit of concurrent turns is reached.", 502: "The agent gave no answer.", 503: TURN[503]}
HEAD = "The data of each event starts with `session_id`, `run_id`, `seq` and `ts`. "
KEPT = "The turn continues when the client disconnects."

SAYS: OperationTable = {
    **COMMON,
    "Status": {
        "GET /health": OperationDoc("Check that the server answers", types.Health),
        "GET /v1/health": OperationDoc("Check that the server answers (alias)", types.Health),
        "GET /health/detailed": OperationDoc("Return the health of each part", types.DetailedHealth),
        "GET /v1/models": OperationDoc("List the models", types.Models),
        "GET /v1/models/{id}": OperationDoc(
            "Return a model", types.Model, error_responses={404: "No model has this name."}
        ),
        "GET /v1/capabilities": OperationDoc("Return the features of this server", types.Capabilities),
    },
    "Sessions": {
        "GET /api/sessions": OperationDoc("List chats", types.SessionPage, query=types.SessionQuery),
        "POST /api/sessions": OperationDoc(
            "Create a chat",
            types.SessionAnswer,
            201,
            body=types.NewSession,
            error_responses={409: "A session with this id exists."},
        ),
        "GET /api/sessions/search": OperationDoc("Search messages", types.Hits, query=types.SearchQuery),
        "GET /api/sessions/{id}": OperationDoc("Return a chat", types.SessionAnswer, error_responses=UNKNOWN),
        "PATCH /api/sessions/{id}": OperationDoc(
            "Change a chat", types.SessionAnswer, body=types.SessionChange, error_responses=UNKNOWN
        ),
        "DELETE /api/sessions/{id}": OperationDoc("Delete a chat", None, 204, error_responses={**UNKNOWN, **APART}),
        "GET /api/sessions/{id}/messages": OperationDoc(
            "List the messages of a chat", types.Messages, query=types.MessageQuery, error_responses=UNKNOWN
        ),
        "POST /api/sessions/{id}/fork": OperationDoc(
            "Copy a chat",
            types.SessionAnswer,
            201,
            body=types.Fork,
            error_responses={**UNKNOWN, 409: "A session with this id exists."},
        ),
    },
    "Turns": {
        "POST /api/sessions/{id}/chat": OperationDoc(
            "Send a message and wait for the answer",
            turns.TurnAnswer,
            body=turns.Turn,
            error_responses=TURN,
            details=KEPT,
        ),
        "POST /api/sessions/{id}/chat/stream": OperationDoc(
            "Send a message and stream the events of the turn",
            {STREAM: str},
            body=turns.Turn,
            error_responses=TURN,
            events=EVENTS,
            details=HEAD + KEPT,
        ),
        "HEAD /api/sessions/{id}/chat/stream": OperationDoc("Check that the route exists, with any session id"),
        "POST /v1/chat/completions": OperationDoc(
            "Create a chat completion in the format of OpenAI",
            {"application/json": turns.Completion, STREAM: str},
            body=turns.CompletionBody,
            headers=turns.CompletionHeaders,
            error_responses=RUN,
            events=turns.COMPLETION_EVENTS,
            details="With `stream` the answer is a stream of chunks, ending with `[DONE]`. The turn ends "
            "when the client disconnects.",
        ),
        "HEAD /v1/chat/completions": OperationDoc("Check that the route exists"),
    },
    "Runs": {
        "POST /v1/runs": OperationDoc(
            "Start a run",
            turns.RunAccepted,
            202,
            body=turns.RunBody,
            other_responses={200: {STREAM: str}},
            error_responses=RUN,
            events=turns.RUN_EVENTS,
            details="The answer is 200 and a stream if `stream` is set or `Accept` is `text/event-stream`.",
        ),
        "HEAD /v1/runs": OperationDoc("Check that runs can be streamed"),
        "GET /v1/runs/{run_id}": OperationDoc("Return the state of a run", turns.Run, error_responses=GONE),
        "GET /v1/runs/{run_id}/events": OperationDoc(
            "Stream the events of a run to one reader", {STREAM: str}, error_responses=GONE, events=turns.RUN_EVENTS
        ),
        "POST /v1/runs/{run_id}/stop": OperationDoc("Stop a run", turns.RunStopping, error_responses=GONE),
        "POST /v1/runs/{run_id}/approval": OperationDoc(
            "Answer an approval request of a run",
            turns.ApprovalAnswer,
            body=turns.ApprovalBody,
            error_responses={**GONE, 409: "No approval request is open, or not this one."},
        ),
    },
    "Responses": {
        "POST /v1/responses": OperationDoc(
            "Create a response in the format of OpenAI",
            {"application/json": turns.Response, STREAM: str},
            body=turns.ResponseBody,
            headers=turns.ResponseHeaders,
            error_responses={**RUN, 404: "No response has this id."},
            events=turns.RESPONSE_EVENTS,
            details="With `stream` the answer is a stream of events.",
        ),
        "GET /v1/responses/{response_id}": OperationDoc(
            "Return a stored response", turns.Response, error_responses=LOST
        ),
        "DELETE /v1/responses/{response_id}": OperationDoc(
            "Delete a stored response", turns.ResponseDeleted, error_responses=LOST
        ),
    },
    "MCP": {
        "POST /mcp": OperationDoc(
            "Receive a message of the Model Context Protocol",
            {"application/json": RpcMessageJson, "text/event-stream": str},
            body=RpcMessageJson,
            other_responses={202: None},
            error_responses={406: "`Accept` must contain both types.", 415: "The message is not application/json."},
            details="Transport: Streamable HTTP, see docs/reference/mcp.md.",
        ),
        "GET /mcp": OperationDoc("Stream server messages that answer no request", {"text/event-stream": str}),
        "DELETE /mcp": OperationDoc("End the MCP session", None, 204),
    },
    "Management": {
        "GET /api/config": OperationDoc("Return the configuration of the agent", types.Config),
        "PATCH /api/config": OperationDoc(
            "Change the model of the agent",
            types.ConfigChanged,
            body=types.ConfigChange,
            error_responses={500: "The configuration file cannot be changed."},
        ),
        "GET /api/memory": OperationDoc(
            "Return the notes of the agent",
            types.Memory,
            query=types.MemoryQuery,
            error_responses={503: "The notes cannot be read."},
        ),
        **{
            f"{method} /api/memory": OperationDoc(
                summary,
                types.MemoryChanged,
                body=body,
                other_responses={400: types.MemoryRefused | types.ShortRefusal, 503: types.MemoryRefused},
            )
            for method, summary, body in (
                ("POST", "Add a note", types.Note),
                ("PATCH", "Replace a note", types.NoteChange),
                ("DELETE", "Remove a note", types.NoteGone),
            )
        },
        "GET /api/skills": OperationDoc("List the skills of the agent", types.Skills, query=types.SkillsQuery),
        "GET /api/skills/{name}": OperationDoc(
            "Return a skill or one of its files", types.Skill, query=types.SkillQuery
        ),
        "GET /api/skills/toggle": OperationDoc("Return the skill named `toggle`", types.Skill, query=types.SkillQuery),
        "PUT /api/skills/toggle": OperationDoc(
            "Refuse to switch a skill, which is not supported", types.NotImplementedHere, 501, body=dict[str, object]
        ),
        "GET /v1/skills": OperationDoc("List the skills in OpenAI's list format", types.SkillRows),
        "GET /v1/toolsets": OperationDoc("List the toolsets of the agent", types.Toolsets),
        "GET /api/available-models": OperationDoc(
            "List the models of a provider", types.AvailableModels, query=types.AvailableQuery
        ),
        "GET /api/mcp-servers": OperationDoc("List the MCP servers that the agent uses", types.McpServers),
        "POST /api/mcp-servers/reload": OperationDoc("Reconnect to all MCP servers", types.McpServers),
        "POST /api/key/reload": OperationDoc(
            "Load the API key from the files again",
            types.KeyReloaded,
            error_responses={409: "The files contain no usable key."},
        ),
    },
}
DOORS: Mapping[Enum, AccessDoc] = {
    Access.PUBLIC: AccessDoc("No credential is required."),
    Access.MONITOR: AccessDoc("For programs on this host, or with `SVC_METRICS_TOKEN`.", ("", "metrics")),
    Access.HERE_OR_KEY: AccessDoc("For programs on this host, or with a key.", ("", "key")),
    Access.KEY: AccessDoc("Requires `API_SERVER_KEY` or a pairing's own key, unless no key is configured.", ("key",)),
    Access.MAIN_KEY: AccessDoc("Requires `API_SERVER_KEY`.", ("key",)),
}
PLACES = {
    "id": "id of the session or model",
    "name": "name of the skill",
    "run_id": "id of the run, from its answer or from the header `X-Svc-Run-Id`",
    "response_id": "id of the response",
}


def _refusal(path: str) -> tuple[str, SchemaType]:
    if path == "/mcp":
        return "McpRefusal", RpcMessageJson | types.Refusal
    return ("ShortRefusal", types.ShortRefusal) if path.startswith(MANAGEMENT) else ("Refusal", types.Refusal)


MANUAL = ApiDoc(
    title="svc-relay API",
    description="Chats with an agent, and its runs, tools, notes and skills. Errors have the format of OpenAI. "
    "Every GET route also answers HEAD. Web pages of other sites get 403 without a body, unless they are allowed.",
    says=SAYS,
    access_docs=DOORS,
    schemes={
        "key": {"type": "http", "scheme": "bearer", "description": "`API_SERVER_KEY`, or a pairing's own key"},
        "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
    },
    path_parameters=PLACES,
    refusal=_refusal,
)
