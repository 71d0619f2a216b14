"""What a tool is: a name and a schema for the model, a flow for us, and what makes it ask first.

A tool's flow returns the text that the model gets; `ToolResult` has pictures besides, `MemoryToolResult` says as well
what has become of the notes. It raises `ToolError` with a text that the model can react to; anything else that is
raised is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from svc_proto.agent.interface import MemoryChange
from svc_proto.engine.flow import Flow

__all__ = ["Arguments", "MemoryToolResult", "ToolImage", "ToolResult", "Tool", "Toolset", "schema"]

Arguments: TypeAlias = Mapping[str, object]


@frozen
class MemoryToolResult:
    """A result, and what was changed in the agent's memory."""

    text: str
    change: MemoryChange


@frozen
class ToolImage:
    """One that a model may look at: its media type, and its bytes as base64."""

    kind: str
    data: str


@frozen
class ToolResult:
    """A result, and the pictures that came with it."""

    text: str
    pictures: tuple[ToolImage, ...] = ()


@frozen(kw_only=True)
class Tool:
    """One tool. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    run: Callable[[Arguments], Flow[str | MemoryToolResult | ToolResult]]
    parameters: Mapping[str, object]
    needs_approval: str | None = None  # why somebody has to allow it first; None: nobody has to
    needs_approval_after_reading: str | None = None  # the same, once the model has read what others wrote
    # Whoever carries it out asks, and we need not: what it is given then, so that nobody else does it.
    requests_own_approval: Callable[[Arguments], Flow[Arguments | None]] | None = None
    asks_by: tuple[str, ...] = ()  # the arguments that a remembered answer is for: the target (the number called, say)
    reads_foreign_content: bool = True  # the model reads what others wrote: a screen, a web page, an answer of a server
    group: str = ""  # which a model with a small context is told of on demand; empty: always
    hidden_by_default: tuple[str, ...] = ()  # arguments that such a model is not told of
    edition: str = ""  # which definition of it: a remembered answer is for this one alone; empty: there is one
    pass_through: bool = False  # whoever carries it out checks the arguments
    sequential: bool = False  # waits for the calls of its kind that came before it in the same answer


@frozen(kw_only=True)
class Toolset:
    """Tools that belong together (wire api 8.2). `offered` ones are told to models."""

    name: str
    label: str
    description: str
    tools: tuple[Tool, ...]
    offered: bool = True
    configured: bool = True
    available: Callable[[], Flow[bool]] | None = None  # whether it can be used at the moment; None: always


def schema(required: tuple[str, ...] = (), /, **properties: Mapping[str, object]) -> Mapping[str, object]:
    """A JSON schema of an object with these properties and no others."""
    found: dict[str, object] = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    return {**found, "additionalProperties": False}
