"""Types of the routes that list and undo a principal's changes, and that change MCP servers."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from svc_proto.api.openapi.types import McpServerRowJson, UnixTime

__all__ = ["ChangeJson", "ChangesJson", "ChangesQueryJson", "UndoChangesJson", "UndoneChangeJson", "UndoneChangesJson"]
__all__ += ["McpSwitchJson", "McpSwitchedJson", "McpTestedJson"]


class ChangesQueryJson(TypedDict, total=False):
    """The principal whose changes are listed; without one, those of all."""

    principal: Annotated[str, "prefix of a session, name of its device, or both with a space between"]


class ChangeJson(TypedDict):
    """A change of an approval, a setting or a note."""

    at: UnixTime
    principal: str
    kind: Literal["approval", "setting", "memory"]
    target: Annotated[str, "chat of the approval, name of the setting, or list of the note"]
    before: str
    after: str


class ChangesJson(TypedDict):
    """Changes, oldest first."""

    changes: list[ChangeJson]


class UndoChangesJson(TypedDict):
    """The principal whose changes are undone."""

    principal: Annotated[str, "as in `GET /api/changes`"]


class UndoneChangeJson(ChangeJson):
    """A change, and whether it is undone."""

    undone: bool
    why: Annotated[str | None, "reason why it is not"]


class UndoneChangesJson(TypedDict):
    """The changes, newest first."""

    ok: bool
    changes: list[UndoneChangeJson]


class McpSwitchJson(TypedDict):
    """Switch of an MCP server."""

    enabled: bool


class McpSwitchedJson(TypedDict):
    """The server after the change."""

    ok: Literal[True]
    name: str
    enabled: bool


class McpTestedJson(McpServerRowJson):
    """State of the server after the attempt; `error` is why it is not ready."""

    ok: bool
    error: str | None
