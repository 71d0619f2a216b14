"""Documentation of routes as data beside the routes: the source of a server's OpenAPI document (`openapi.document`).

    OPERATIONS = {"Sessions": {"GET /sessions": OperationDoc("List the paired devices", Sessions), ...}, ...}

The tables are loaded with the first request for a document.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from attrs import field, frozen

__all__ = ["AccessDoc", "ApiDoc", "OperationDoc", "SchemaType", "OperationTable"]

SchemaType: TypeAlias = object
"""A type of JSON (`schema.json_schema`); a mapping from media types to such types; None: there is no body."""


@frozen
class OperationDoc:
    """Documentation of one route.

    `answer` has the status `status`; `other_responses` has the handler's further responses, by status or as `2XX`.
    `body` is the type of the request body. `query` and `headers` have the types of parameters by name; those of type
    `Required` must be present.
    `error_responses` has the route's own refusals with their meaning; those of admission and protocol are common.
    `events`: data types of a stream's events, by name. `client_messages` and `server_messages`: messages of a
    WebSocket, by direction.
    """

    summary: str
    answer: SchemaType = None
    status: int = 200
    body: SchemaType = field(default=None, kw_only=True)
    query: Mapping[str, object] = field(factory=dict, kw_only=True)
    headers: Mapping[str, object] = field(factory=dict, kw_only=True)
    other_responses: Mapping[int | str, SchemaType] = field(factory=dict, kw_only=True)
    error_responses: Mapping[int, str] = field(factory=dict, kw_only=True)
    details: str = field(default="", kw_only=True)
    events: Mapping[str, object] = field(factory=dict, kw_only=True)
    client_messages: Mapping[str, type] = field(factory=dict, kw_only=True)
    server_messages: Mapping[str, type] = field(factory=dict, kw_only=True)


OperationTable: TypeAlias = Mapping[str, Mapping[str, OperationDoc]]
"""Topics, and their routes by label: `"GET /sessions"`."""


@frozen
class AccessDoc:
    """Access policy in words, and the names of the schemes of which one is required.

    An empty name means that the route is also open without a scheme.
    """

    words: str
    schemes: tuple[str, ...] = ()


@frozen(kw_only=True)
class ApiDoc:
    """Documentation of a server. `refusal` returns the name and the type of a path's refusals."""

    title: str
    description: str
    operations: OperationTable
    access_docs: Mapping[Enum, AccessDoc]
    schemes: Mapping[str, Mapping[str, str]]
    path_parameters: Mapping[str, str]  # by name in the braces of paths
    refusal: Callable[[str], tuple[str, SchemaType]]

    @property
    def by_label(self) -> dict[str, OperationDoc]:
        """Descriptions of all routes by label."""
        return {label: doc for docs in self.operations.values() for label, doc in docs.items()}
