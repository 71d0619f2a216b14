"""Descriptions of the API's routes for its OpenAPI document: one row for each row of the route tables."""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal, Required

from svc_proto.api.access import ApiAccess
from svc_proto.api.errors import MANAGEMENT
from svc_proto.api.openapi import change_types
from svc_proto.api.openapi import run_types as turns
from svc_proto.openapi.document import COMMON, MCP_OPERATIONS, PICTURE, STREAM
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc, OperationTable, SchemaType
from svc_proto.openapi.profile_operations import (
    CONTEXT,
    IMAGE_ACTIVITY,
    PROFILE,
    PROFILE_OPERATIONS,
    PROFILE_PARAMETERS,
)
from svc_proto.schema import api_types as types
from svc_proto.schema.chat_events import EVENTS
from svc_proto.schema.common_types import NonNegativeInt, RpcMessageJson

__all__ = ["API_DOC"]

NO_MCP_SERVER = {404: "No MCP server of this name is configured."}
NO_SESSION_RESPONSES = {404: "No session has this id."}
NODE_UNREACHABLE_RESPONSES = {503: "The node that may hold it cannot be reached."}
NO_RUN_RESPONSES = {404: "No run has this id, or it ended too long ago.", **NODE_UNREACHABLE_RESPONSES}
NO_RESPONSE_RESPONSES = {404: "No response has this id.", **NODE_UNREACHABLE_RESPONSES}
TURN = {
    404: "No session has this id.",
    429: "The limit of concurrent turns is reached.",
    502: "The agent gave no answer.",
    503: "The server is shutting down, or its store or the node of the session does not answer.",
}
RUN = {429: "The limit of concurrent turns is reached.", 502: "The agent gave no answer.", 503: TURN[503]}
HEAD = "The data of each event starts with `session_id`, `run_id`, `seq` and `ts`. "
KEPT = "The turn continues when the client disconnects."
IDEMPOTENCY_KEY = {
    "Idempotency-Key": Annotated[str, "a repeated key gets the stored answer; of a stream it ends the first turn"]
}
SESSION_QUERY = {
    "limit": Annotated[int, "1 to 200; 50 if absent or not a number"],
    "offset": Annotated[int, "number of chats to skip"],
    "source": Annotated[str, "only chats of this source"],
    "include_children": Annotated[bool, "include the chats of sub-agents"],
    "include_archived": bool,
    "archived": Annotated[str, "exclude, include or only; exclude if absent"],
    "min_messages": Annotated[int, "only chats with at least this many messages"],
}

OPERATIONS: OperationTable = {
    **COMMON,
    "Status": {
        "GET /health": OperationDoc("Check that the server answers", types.HealthJson),
        "GET /v1/health": OperationDoc("Check that the server answers (alias)", types.HealthJson),
        "GET /health/detailed": OperationDoc("Return the health of each part", types.DetailedHealthJson),
        "GET /v1/models": OperationDoc("List the models", types.ModelsJson),
        "GET /v1/models/{id}": OperationDoc(
            "Return a model", types.ModelJson, error_responses={404: "No model has this name."}
        ),
        "GET /v1/capabilities": OperationDoc("Return the features of this server", types.CapabilitiesJson),
    },
    "Sessions": {
        "GET /api/sessions": OperationDoc("List chats", types.SessionPageJson, query=SESSION_QUERY),
        "POST /api/sessions": OperationDoc(
            "Create a chat",
            types.SessionAnswerJson,
            201,
            body=types.NewSessionJson,
            error_responses={409: "A session with this id exists."},
        ),
        "GET /api/sessions/search": OperationDoc(
            "Search messages",
            types.HitsJson,
            query={
                "q": Required[Annotated[str, "words to search for"]],
                "limit": NonNegativeInt,
                "offset": NonNegativeInt,
            },
        ),
        "GET /api/sessions/{id}": OperationDoc(
            "Return a chat", types.SessionAnswerJson, error_responses=NO_SESSION_RESPONSES
        ),
        "PATCH /api/sessions/{id}": OperationDoc(
            "Change a chat", types.SessionAnswerJson, body=types.SessionChangeJson, error_responses=NO_SESSION_RESPONSES
        ),
        "DELETE /api/sessions/{id}": OperationDoc(
            "Delete a chat", None, 204, error_responses={**NO_SESSION_RESPONSES, **NODE_UNREACHABLE_RESPONSES}
        ),
        "GET /api/sessions/{id}/messages": OperationDoc(
            "List the messages of a chat",
            types.MessagesJson,
            query={"limit": int, "offset": int, "order": Annotated[str, "latest: count pages from the end"]},
            error_responses=NO_SESSION_RESPONSES,
        ),
        "DELETE /api/sessions/{id}/messages": OperationDoc(
            "Remove a message of the user and all after it, after a turn under way was stopped",
            None,
            204,
            query={"from_row": Required[Annotated[int, "`row_id` of a message of the user"]]},
            error_responses={**NO_SESSION_RESPONSES, **NODE_UNREACHABLE_RESPONSES},
        ),
        "GET /api/sessions/{id}/pictures/{token}": OperationDoc(
            "Return a picture of the phone that is stored with a chat, by the token of its `MEDIA:` line",
            PICTURE,
            error_responses={404: "The chat has no such picture."},
        ),
        "GET /api/sessions/{id}/image-activity": IMAGE_ACTIVITY,
        "POST /api/sessions/{id}/fork": OperationDoc(
            "Copy a chat",
            types.SessionAnswerJson,
            201,
            body=types.ForkJson,
            error_responses={**NO_SESSION_RESPONSES, 409: "A session with this id exists."},
        ),
    },
    "Turns": {
        "POST /api/sessions/{id}/chat": OperationDoc(
            "Send a message and wait for the answer",
            turns.TurnAnswerJson,
            body=turns.TurnRequestJson,
            error_responses=TURN,
            details=KEPT,
        ),
        "POST /api/sessions/{id}/chat/stream": OperationDoc(
            "Send a message and stream the events of the turn",
            {STREAM: str},
            body=turns.TurnRequestJson,
            error_responses=TURN,
            events=EVENTS,
            details=HEAD + KEPT,
        ),
        "HEAD /api/sessions/{id}/chat/stream": OperationDoc("Check that the route exists, with any session id"),
        "POST /v1/chat/completions": OperationDoc(
            "Create a chat completion in the format of OpenAI",
            {"application/json": turns.CompletionJson, STREAM: str},
            body=turns.CompletionBodyJson,
            headers={
                **IDEMPOTENCY_KEY,
                "X-Svc-Session-Id": Annotated[str, "id of the stored session to continue"],
                "X-Svc-Session-Key": Annotated[str, "scope of the long-term memory"],
                "X-Svc-Tool-Progress": Annotated[str, "1: include events of tools in the stream"],
            },
            error_responses=RUN,
            events=turns.COMPLETION_EVENTS,
            details="With `stream` the answer is a stream of chunks, ending with `[DONE]`. The turn ends "
            "when the client disconnects.",
        ),
        "HEAD /v1/chat/completions": OperationDoc("Check that the route exists"),
    },
    "Gateway": {
        "GET /api/ws": OperationDoc(
            "Open the WebSocket of the gateway",
            details="Each message is one or more lines of JSON-RPC 2.0. The server's first message is the event "
            "`gateway.ready`. Sessions and turns are those of the other routes.",
        ),
    },
    "Runs": {
        "POST /v1/runs": OperationDoc(
            "Start a run",
            turns.RunAcceptedJson,
            202,
            body=turns.RunBodyJson,
            other_responses={200: {STREAM: str}},
            error_responses=RUN,
            events=turns.RUN_EVENTS,
            details="The answer is 200 and a stream if `stream` is set or `Accept` is `text/event-stream`.",
        ),
        "HEAD /v1/runs": OperationDoc("Check that runs can be streamed"),
        "GET /v1/runs/{run_id}": OperationDoc(
            "Return the state of a run", turns.RunJson, error_responses=NO_RUN_RESPONSES
        ),
        "GET /v1/runs/{run_id}/events": OperationDoc(
            "Stream the events of a run to one reader",
            {STREAM: str},
            error_responses=NO_RUN_RESPONSES,
            events=turns.RUN_EVENTS,
        ),
        "POST /v1/runs/{run_id}/stop": OperationDoc(
            "Stop a run", turns.RunStoppingJson, error_responses=NO_RUN_RESPONSES
        ),
        "POST /v1/runs/{run_id}/approval": OperationDoc(
            "Answer an approval request of a run",
            turns.ApprovalAnswerJson,
            body=turns.ApprovalBodyJson,
            error_responses={**NO_RUN_RESPONSES, 409: "No approval request is open, or not this one."},
        ),
    },
    "Responses": {
        "POST /v1/responses": OperationDoc(
            "Create a response in the format of OpenAI",
            {"application/json": turns.ResponseJson, STREAM: str},
            body=turns.ResponseBodyJson,
            headers=IDEMPOTENCY_KEY,
            error_responses={**RUN, 404: "No response has this id."},
            events=turns.RESPONSE_EVENTS,
            details="With `stream` the answer is a stream of events.",
        ),
        "GET /v1/responses/{response_id}": OperationDoc(
            "Return a stored response", turns.ResponseJson, error_responses=NO_RESPONSE_RESPONSES
        ),
        "DELETE /v1/responses/{response_id}": OperationDoc(
            "Delete a stored response", turns.ResponseDeletedJson, error_responses=NO_RESPONSE_RESPONSES
        ),
    },
    "MCP": MCP_OPERATIONS,
    "Management": {
        "GET /api/config": OperationDoc("Return the configuration of the agent", types.ConfigJson),
        "PATCH /api/config": OperationDoc(
            "Change the model of the agent",
            types.ConfigChangedJson,
            body=types.ConfigChangeJson,
            error_responses={500: "The configuration file cannot be changed."},
        ),
        "GET /api/memory": OperationDoc(
            "Return the notes of the agent",
            types.MemoryJson,
            query={"target": Literal["all", "memory", "user"]},
            error_responses={503: "The notes cannot be read."},
        ),
        **{
            f"{method} /api/memory": OperationDoc(
                summary,
                types.MemoryChangedJson,
                body=body,
                other_responses={400: types.MemoryRefusedJson | types.ShortRefusalJson, 503: types.MemoryRefusedJson},
            )
            for method, summary, body in (
                ("POST", "Add a note", types.NoteJson),
                ("PATCH", "Replace a note", types.NoteChangeJson),
                ("DELETE", "Remove a note", types.NoteRemovalJson),
            )
        },
        "GET /api/skills": OperationDoc("List the skills of the agent", types.SkillsJson, query={"category": str}),
        "GET /api/skills/{name}": OperationDoc(
            "Return a skill or one of its files",
            types.SkillJson,
            query={"file_path": Annotated[str, "a file of the skill"]},
        ),
        "GET /api/skills/toggle": OperationDoc(
            "Return the skill named `toggle`",
            types.SkillJson,
            query={"file_path": Annotated[str, "a file of the skill"]},
        ),
        "PUT /api/skills/toggle": OperationDoc(
            "Refuse to switch a skill, which is not supported",
            types.NotImplementedHereJson,
            501,
            body=dict[str, object],
        ),
        "GET /v1/skills": OperationDoc("List the skills in OpenAI's list format", types.SkillRowsJson),
        **PROFILE_OPERATIONS,
        f"GET {PROFILE}/context": CONTEXT,
        "GET /v1/toolsets": OperationDoc("List the toolsets of the agent", types.ToolsetsJson),
        "GET /api/available-models": OperationDoc(
            "List the models of a provider", types.AvailableModelsJson, query={"provider": str}
        ),
        "GET /api/model/options": OperationDoc("List the models that can be chosen", types.ModelOptionsJson),
        "GET /api/mcp-servers": OperationDoc("List the MCP servers that the agent uses", types.McpServersJson),
        "POST /api/mcp-servers/reload": OperationDoc("Reconnect to all MCP servers", types.McpServersJson),
        "PUT /api/mcp-servers/{name}/enabled": OperationDoc(
            "Set whether the agent uses an MCP server",
            change_types.McpSwitchedJson,
            body=change_types.McpSwitchJson,
            error_responses={**NO_MCP_SERVER, 500: "The configuration file cannot be changed."},
        ),
        "POST /api/mcp-servers/{name}/test": OperationDoc(
            "Connect to an MCP server, and report its tools or its problem",
            change_types.McpTestedJson,
            error_responses=NO_MCP_SERVER,
        ),
        "GET /api/host": OperationDoc(
            "List the settings of the host",
            change_types.HostSettingsJson,
            error_responses={500: "`.env` cannot be read."},
        ),
        "PATCH /api/host": OperationDoc(
            "Change settings of the host",
            change_types.HostSettingsJson,
            body=change_types.HostChangeJson,
            error_responses={
                409: "The environment of the servers has the setting, or the API has no key.",
                500: "`.env` cannot be read or written.",
            },
        ),
        "POST /api/key/rotate": OperationDoc(
            "Replace the API key by a new one",
            types.KeyReloadedJson,
            error_responses={
                409: "The environment of the server has the key, or the API has no key.",
                500: "A file cannot be read or written; the old key stays.",
            },
        ),
        "POST /api/key/reload": OperationDoc(
            "Load the API key from the files again",
            types.KeyReloadedJson,
            error_responses={409: "The files contain no usable key."},
        ),
        "POST /api/model/probe": OperationDoc(
            "List the models of a server, and test one",
            change_types.ModelProbedJson,
            body=change_types.ModelProbeJson,
        ),
        "GET /api/approvals": OperationDoc(
            "List the standing approvals",
            change_types.StandingApprovalsJson,
            error_responses={503: "The store of the agent cannot be read or written."},
        ),
        "DELETE /api/approvals": OperationDoc(
            "End a standing approval",
            change_types.ApprovalEndedJson,
            body=change_types.ApprovalEndJson,
            error_responses={
                404: "There is no such approval.",
                503: "The store of the agent cannot be read or written.",
            },
        ),
        "GET /api/changes": OperationDoc(
            "List what a principal changed at the agent",
            change_types.ChangesJson,
            query={
                "principal": Annotated[str, "prefix of a session, name of its device, or both with a space between"]
            },
        ),
        "POST /api/changes/undo": OperationDoc(
            "Undo what a principal changed at the agent",
            change_types.UndoneChangesJson,
            body=change_types.UndoChangesJson,
        ),
    },
}
ACCESS_DOCS: Mapping[Enum, AccessDoc] = {
    ApiAccess.PUBLIC: AccessDoc("No credential is required."),
    ApiAccess.MONITOR: AccessDoc("For programs on this host, or with `SVC_METRICS_TOKEN`.", ("", "metrics")),
    ApiAccess.LOCAL_OR_KEY: AccessDoc("For programs on this host, or with a key.", ("", "key")),
    ApiAccess.KEY: AccessDoc(
        "Requires `API_SERVER_KEY` or a pairing's own key, unless no key is configured.", ("key",)
    ),
    ApiAccess.MANAGE: AccessDoc(
        "Requires `API_SERVER_KEY`, or the own key of a pairing with the right `manage`, unless no key is configured.",
        ("key",),
    ),
    ApiAccess.MAIN_KEY: AccessDoc("Requires `API_SERVER_KEY`.", ("key",)),
    ApiAccess.OWNER: AccessDoc("Requires `API_SERVER_KEY`.", ("key",)),
}
PATH_PARAMETERS = {
    **PROFILE_PARAMETERS,
    "id": "id of the session or model",
    "name": "name of the skill or MCP server",
    "run_id": "id of the run, from its answer or from the header `X-Svc-Run-Id`",
    "response_id": "id of the response",
    "token": "media token of the relay, from the line of the message",
}


def _refusal(path: str) -> tuple[str, SchemaType]:
    if path == "/mcp":
        return "McpRefusal", RpcMessageJson | types.RefusalJson
    return ("ShortRefusal", types.ShortRefusalJson) if path.startswith(MANAGEMENT) else ("Refusal", types.RefusalJson)


API_DOC = ApiDoc(
    title="svc-relay API",
    description="Chats with an agent, and its runs, tools, notes and skills. Errors have the format of OpenAI. "
    "Every GET route also answers HEAD. Web pages of other sites get 403 without a body, unless they are allowed.",
    operations=OPERATIONS,
    access_docs=ACCESS_DOCS,
    schemes={
        "key": {"type": "http", "scheme": "bearer", "description": "`API_SERVER_KEY`, or a pairing's own key"},
        "metrics": {"type": "http", "scheme": "bearer", "description": "`SVC_METRICS_TOKEN`"},
    },
    path_parameters=PATH_PARAMETERS,
    refusal=_refusal,
)
