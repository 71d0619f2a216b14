"""What a tool is: a name and a schema for the model, a flow for us, and what makes it ask first.

A tool's flow returns the text that the model gets; `Returned` has pictures besides, `Noted` says as well what has
become of the notes. It raises `ToolError` with a text that the model can react to; anything else that is raised is a
bug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from svc_proto.agent.interface import NoteChange
from svc_proto.engine.flow import Flow

__all__ = ["Arguments", "Noted", "Picture", "Returned", "Tool", "Toolset", "schema"]

Arguments: TypeAlias = Mapping[str, object]


@frozen
class Noted:
    """A result, and what was changed in the agent's memory."""

    text: str
    change: NoteChange


@frozen
class Picture:
    """One that a model may look at: its media type, and its bytes as base64."""

    kind: str
    data: str


@frozen
class Returned:
    """A result, and the pictures that came with it."""

    text: str
    pictures: tuple[Picture, ...] = ()


@frozen(kw_only=True)
class Tool:
    """One tool. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    run: Callable[[Arguments], Flow[str | Noted | Returned]]
    parameters: Mapping[str, object]
    asks: str | None = None  # why somebody has to allow it first; None: nobody has to
    asks_having_read: str | None = None  # the same, once the model has read what others wrote
    # Whoever carries it out asks, and we need not: what it is given then, so that nobody else does it.
    asks_itself: Callable[[Arguments], Flow[Arguments | None]] | None = None
    asks_by: tuple[str, ...] = ()  # the arguments that a remembered answer is for: the target (the number called, say)
    reads: bool = True  # the model reads what others wrote: a screen, a web page, an answer of a server
    group: str = ""  # which a model with a small context is told of on demand; empty: always
    seldom: tuple[str, ...] = ()  # arguments that such a model is not told of
    edition: str = ""  # which definition of it: a remembered answer is for this one alone; empty: there is one
    passes: bool = False  # whoever carries it out checks the arguments
    in_order: bool = False  # waits for the calls of its kind that came before it in the same answer


@frozen(kw_only=True)
class Toolset:
    """Tools that belong together (wire api 8.2). `offered` ones are told to models."""

    name: str
    label: str
    description: str
    tools: tuple[Tool, ...]
    offered: bool = True
    configured: bool = True
    there: Callable[[], Flow[bool]] | None = None  # whether it can be used at the moment; None: always


def schema(required: tuple[str, ...] = (), /, **properties: Mapping[str, object]) -> Mapping[str, object]:
    """A JSON schema of an object with these properties and no others."""
    found: dict[str, object] = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    return {**found, "additionalProperties": False}
