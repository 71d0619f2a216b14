"""What a route says of itself, as data beside the routes: from it come the documents of a server (`openapi.openapi`).

    SAYS = {"Sessions": {"GET /sessions": Says("The paired devices", Sessions), ...}, ...}

Nothing of it is loaded before somebody asks for a document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from attrs import field, frozen

__all__ = ["AccessDoc", "ApiDoc", "OperationDoc", "SchemaType", "OperationTable"]

SchemaType: TypeAlias = object
"""A type of JSON (`schema.json_schema`); a mapping from media types to such types; None: there is no body."""


@frozen
class OperationDoc:
    """One route. `answer` has the status `status`, `other_responses` other answers that are no refusals, by status or
    as `2XX`.

    `body` is what it reads, `query` and `headers` are classes whose members are its parameters. `error_responses`:
    refusals that are its own, and what they mean; those of the door and of the protocol need no word. `events`: of a
    stream, the data of each event by its name. `client_messages` and `server_messages`: of a WebSocket, what the client
    says in its messages, and the server.
    """

    summary: str
    answer: SchemaType = None
    status: int = 200
    body: SchemaType = field(default=None, kw_only=True)
    query: type | None = field(default=None, kw_only=True)
    headers: type | None = field(default=None, kw_only=True)
    other_responses: Mapping[int | str, SchemaType] = field(factory=dict, kw_only=True)
    error_responses: Mapping[int, str] = field(factory=dict, kw_only=True)
    details: str = field(default="", kw_only=True)
    events: Mapping[str, object] = field(factory=dict, kw_only=True)
    client_messages: Mapping[str, type] = field(factory=dict, kw_only=True)
    server_messages: Mapping[str, type] = field(factory=dict, kw_only=True)


OperationTable: TypeAlias = Mapping[str, Mapping[str, OperationDoc]]
"""Themes, and their routes by label: `"GET /sessions"`."""


@frozen
class AccessDoc:
    """A policy in words, and the names of the schemes of which one has to be shown; an empty one: none has to be."""

    words: str
    schemes: tuple[str, ...] = ()


@frozen(kw_only=True)
class ApiDoc:
    """All that a server says of itself. `refusal` names what a path answers where it refuses, and gives its shape."""

    title: str
    description: str
    says: OperationTable
    access_docs: Mapping[Enum, AccessDoc]
    schemes: Mapping[str, Mapping[str, str]]
    path_parameters: Mapping[str, str]  # what stands in the braces of paths
    refusal: Callable[[str], tuple[str, SchemaType]]
