"""Types of a tool: name and schema for the model, a flow that runs it, and its approval rules.

A tool's flow returns text for the model; `ToolResult` has images besides, `MemoryToolResult` a change of the notes. It
raises `ToolError` with a text that the model can react to; any other exception is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from svc_proto.agent.interface import MemoryChange, StoredPicture
from svc_proto.agent.turn_consent import CallConsent
from svc_proto.engine.flow import Flow
from svc_proto.schema.effects.command_effects import Effect

__all__ = ["Arguments", "MemoryToolResult", "ToolImage", "ToolResult", "Tool", "Toolset", "schema"]

Arguments: TypeAlias = Mapping[str, object]


@frozen
class MemoryToolResult:
    """A result, and the change of the agent's memory."""

    text: str
    change: MemoryChange


@frozen
class ToolImage:
    """An image for the model: its media type, and its bytes as base64."""

    kind: str
    data: str


@frozen
class ToolResult:
    """Result of a tool: a text and images for the model, and pictures to store with the chat."""

    text: str
    pictures: tuple[ToolImage, ...] = ()
    stored: tuple[StoredPicture, ...] = ()


@frozen(kw_only=True)
class Tool:
    """Tool of the agent. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    run: Callable[[Arguments], Flow[str | MemoryToolResult | ToolResult]]
    parameters: Mapping[str, object]
    needs_approval: str | None = None  # reason for the approval; None: none is needed
    needs_approval_after_reading: str | None = None  # the same, after the model has read foreign content
    # If the executor requests approval itself, the arguments that bind the call to it; else None.
    requests_own_approval: Callable[[Arguments], Flow[Arguments | None]] | None = None
    # The same tool for one call, whose effects need consent while it runs; None: the tool has no such effects.
    with_consent: Callable[[CallConsent], Tool] | None = None
    effect_of: Callable[[Arguments], Effect | None] | None = None  # effect of a call, known from its arguments
    reads_foreign_content: bool = True  # the result may hold foreign content: a screen, a web page, a server's answer
    source: str = ""  # origin of that content, which the result names; for the phone, the app in front is named
    group: str = ""  # that a model with a small context gets on demand; empty: always offered
    is_rare: bool = False  # offered to models by `more_tools` only
    hidden_by_default: tuple[str, ...] = ()  # arguments that are not offered to such a model
    edition: str = ""  # version of the definition, to which a stored approval is bound; empty: there is one
    pass_through: bool = False  # the executor checks the arguments
    sequential: bool = False  # runs after earlier sequential calls of the same answer
    is_act: bool = False  # changes what the phone shows; the acts of one peer are done in order


@frozen(kw_only=True)
class Toolset:
    """Tools that belong together (wire api 8.2). `offered`: the toolset is listed for clients and models."""

    name: str
    label: str
    description: str
    tools: tuple[Tool, ...]
    offered: bool = True
    configured: bool = True
    needs: str = ""  # power of `svc_proto.service_clients.authority` that the turn's principal must hold; empty: none
    available: Callable[[], Flow[bool]] | None = None  # reports whether the toolset is usable now; None: always
    hidden: Callable[[], Flow[tuple[str, ...]]] | None = None  # returns arguments that a model does not need now


def schema(required: tuple[str, ...] = (), /, **properties: Mapping[str, object]) -> Mapping[str, object]:
    """Build a JSON schema of an object with the given `properties` and no others; `required` names mandatory ones."""
    found: dict[str, object] = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    return {**found, "additionalProperties": False}
