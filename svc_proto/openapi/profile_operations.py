"""Descriptions of the profile inspector's routes, which the API server and the relay offer."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict

from svc_proto.openapi.operation_doc import OperationDoc
from svc_proto.schema.common_types import NonNegativeInt

__all__ = [
    "CONTEXT",
    "IMAGE_ACTIVITY",
    "PROFILE",
    "PROFILE_OPERATIONS",
    "PROFILE_PARAMETERS",
]


class ProfileConfigJson(TypedDict):
    """Settings of the agent, without secrets."""

    profile: str
    path: str
    config: Mapping[str, object]
    readonly: Literal[True]


class ProfileSkillJson(TypedDict):
    """Summary of a skill, with its file."""

    name: str
    category: str | None
    description: str
    path: str
    enabled: Literal[True]


class ProfileSkillsJson(TypedDict):
    """Skills of the agent."""

    profile: str
    skills: list[ProfileSkillJson]
    total: NonNegativeInt


class SoulJson(TypedDict):
    """System prompt of the agent; `path` is the configuration file that holds it."""

    profile: str
    path: str
    content: str
    exists: bool
    size_bytes: NonNegativeInt
    truncated: Literal[False]


class NoteFileJson(TypedDict):
    """A list of notes as a file, with a line that holds a section sign between notes."""

    name: Literal["memory", "user"]
    filename: str
    path: str
    content: str
    size_bytes: NonNegativeInt


class NoteFilesJson(TypedDict):
    """Notes of the agent."""

    profile: str
    memories_dir: str
    entries: list[NoteFileJson]
    total: NonNegativeInt


class FileContentJson(TypedDict):
    """Content of a file."""

    content: Annotated[str, "empty: remove all"]


class FileWrittenJson(TypedDict):
    """File that was written, and the number of bytes."""

    ok: Literal[True]
    profile: str
    path: str
    bytes_written: NonNegativeInt


class ContextBlockJson(TypedDict):
    """A part of each prompt."""

    name: str
    text: str


class InjectedContextJson(TypedDict):
    """Parts of each prompt beside the chat; empty ones are left out."""

    enabled: bool
    blocks: list[ContextBlockJson]


class ImageCallJson(TypedDict):
    """A call of a tool that takes pictures; times are Unix seconds."""

    call_id: str
    tool_name: str
    state: Literal["started", "completed", "failed"]
    started_at: float
    completed_at: Annotated[float | None, "null while the call runs, or if its turn ended before its result"]


class ImageActivityJson(TypedDict):
    """Calls of tools that take pictures in a chat, oldest first."""

    session_id: str
    profile: str
    activities: list[ImageCallJson]


PROFILE = "/api/profiles/{profile}"
NO_PROFILE = {404: "There is no such profile."}
NO_STORE = {**NO_PROFILE, 503: "The notes cannot be read or written."}
CONTEXT = OperationDoc("Return what each prompt of the agent holds beside the chat", InjectedContextJson)
IMAGE_ACTIVITY = OperationDoc(
    "List the calls of tools that take pictures, in the newest 500 messages of a chat",
    ImageActivityJson,
    query={
        "profile": Annotated[str, "`default`, the only profile"],
        "since": Annotated[float, "Unix seconds: leave out calls that were completed earlier"],
    },
    error_responses={404: "There is no such chat or profile.", 503: "The node that runs the chat cannot be reached."},
)
PROFILE_OPERATIONS = {
    f"GET {PROFILE}/config": OperationDoc(
        "Return the settings of the agent, without secrets", ProfileConfigJson, error_responses=NO_PROFILE
    ),
    f"GET {PROFILE}/skills": OperationDoc(
        "List the skills of the agent with their files", ProfileSkillsJson, error_responses=NO_PROFILE
    ),
    f"GET {PROFILE}/soul": OperationDoc("Return the system prompt of the agent", SoulJson, error_responses=NO_PROFILE),
    f"PUT {PROFILE}/soul": OperationDoc(
        "Change the system prompt of the agent", FileWrittenJson, body=FileContentJson, error_responses=NO_PROFILE
    ),
    f"GET {PROFILE}/memory": OperationDoc("Return the notes as files", NoteFilesJson, error_responses=NO_STORE),
    f"PUT {PROFILE}/memory/{{filename}}": OperationDoc(
        "Replace a file of notes", FileWrittenJson, body=FileContentJson, error_responses=NO_STORE
    ),
    f"GET {PROFILE}/avatar": OperationDoc(
        "Return the picture of the agent",
        {"*/*": bytes},
        error_responses={404: "The agent has no picture, or there is no such profile."},
    ),
}
PROFILE_PARAMETERS = {"profile": "`default`, the only profile", "filename": "`MEMORY.md` or `USER.md`"}
