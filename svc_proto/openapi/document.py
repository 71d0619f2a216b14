"""OpenAPI 3.1 document of a server: the operations from its route table, the texts from its `ApiDoc`."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Required, cast, get_origin

from attrs import field, frozen

from svc_proto.basics import strict_json
from svc_proto.engine.router import Route, RouteKind
from svc_proto.openapi.operation_doc import ApiDoc, OperationDoc, SchemaType
from svc_proto.schema.common_types import LivenessJson, ReadinessJson, RpcMessageJson
from svc_proto.schema.json_schema import JsonSchema, SchemaComponents, schema_of
from svc_proto.version import VERSION

__all__ = ["COMMON", "JSON", "MCP_OPERATIONS", "PICTURE", "STREAM", "build_document", "document_json"]

JSON = "application/json"
STREAM = "text/event-stream"
PICTURE: Mapping[str, SchemaType] = dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), bytes)

COMMON = {
    "Monitoring": {
        "GET /metrics": OperationDoc(
            "Return the metrics in the OpenMetrics format",
            {"application/openmetrics-text": str},
            error_responses={503: "The metrics cannot be written: prometheus-client is not installed."},
        ),
        "GET /healthz": OperationDoc("Check that the process answers", LivenessJson),
        "GET /readyz": OperationDoc(
            "Check that the server accepts work", ReadinessJson, other_responses={503: ReadinessJson}
        ),
    },
    "Documents": {
        "GET /openapi.json": OperationDoc(
            "Return this document", dict, other_responses={304: None}, details="The answer has an `ETag`."
        ),
        "GET /docs": OperationDoc("Return this document as a page", {"text/html": str}, other_responses={304: None}),
    },
}
"""The routes that each server has."""
MCP_OPERATIONS = {
    "POST /mcp": OperationDoc(
        "Receive a message of the Model Context Protocol",
        {JSON: RpcMessageJson, STREAM: str},
        body=RpcMessageJson,
        other_responses={202: None},
        error_responses={406: "`Accept` must contain both types.", 415: "The message is not application/json."},
        details="Transport: Streamable HTTP, see docs/reference/mcp.md.",
    ),
    "GET /mcp": OperationDoc("Stream server messages that answer no request", {STREAM: str}),
    "DELETE /mcp": OperationDoc("End the MCP session", None, 204),
}
"""The routes of an MCP server, which the API server and the relay are."""

_BRACES = re.compile(r"{(\w+)}")
_APART = re.compile(r"\W+")


def document_json(routes: Iterable[Route], manual: ApiDoc, prefix: str, version: str) -> bytes:
    """Return the document as JSON. `prefix` is the path under which a proxy serves all routes.

    Raises `KeyError` for a route without documentation.
    """
    return strict_json.dumps_bytes(build_document(routes, manual, prefix, version))


def build_document(
    routes: Iterable[Route], manual: ApiDoc, prefix: str = "", version: str = VERSION
) -> dict[str, object]:
    """Return the document. Raises `KeyError` for a route without documentation."""
    themes = {label: theme for theme, rows in manual.operations.items() for label in rows}
    docs = manual.by_label
    writer = _DocumentBuilder(manual)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        operation = writer.operation(route, docs[route.label])
        paths.setdefault(route.pattern, {})[route.method.lower()] = {"tags": [themes[route.label]], **operation}
    document: dict[str, object] = {
        "openapi": "3.1.0",
        "info": {"title": manual.title, "version": version, "description": manual.description},
        "tags": [{"name": theme} for theme in manual.operations],
        "paths": paths,
        "components": {
            "schemas": writer.parts.schemas,
            "responses": writer.refusals,
            "securitySchemes": dict(manual.schemes),
        },
    }
    return {**document, "servers": [{"url": prefix}]} if prefix else document


@frozen
class _DocumentBuilder:
    """Builder of one document, which holds each shared schema and refusal once."""

    manual: ApiDoc
    parts: SchemaComponents = field(factory=SchemaComponents)
    refusals: dict[str, object] = field(factory=dict)

    def operation(self, route: Route, doc: OperationDoc) -> dict[str, object]:
        access = self.manual.access_docs[route.access]
        words = f"{doc.details}\n\n{access.words}" if doc.details else access.words
        found: dict[str, object] = {
            "operationId": _identity(route),
            "summary": doc.summary,
            "description": words,
            "security": [{scheme: []} if scheme else {} for scheme in access.schemes],
        }
        parameters = [*self._places(route), *self._members(doc.query, "query"), *self._members(doc.headers, "header")]
        if parameters:
            found["parameters"] = parameters
        if doc.body is not None:
            found["requestBody"] = {"content": self._content(doc.body, {}), **_requirement(doc.body)}
        return {**found, "responses": self._responses(route, doc)}

    def _places(self, route: Route) -> list[dict[str, object]]:
        """Return the path parameters of a route, with their descriptions."""
        text = {"type": "string", "minLength": 1}
        return [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": self.manual.path_parameters[name],
                "schema": text,
            }
            for name in _BRACES.findall(route.pattern)
        ]

    def _members(self, kinds: Mapping[str, object], place: str) -> list[dict[str, object]]:
        """Return the parameters with these types."""
        return [
            {"name": name, "in": place, "required": get_origin(kind) is Required, "schema": schema_of(kind, self.parts)}
            for name, kind in kinds.items()
        ]

    def _content(self, shape: SchemaType, events: Mapping[str, object]) -> dict[str, object]:
        by_type = cast("Mapping[str, object]", shape) if isinstance(shape, Mapping) else {JSON: shape}
        content: dict[str, object] = {}
        for media, kind in by_type.items():
            if media == STREAM:
                content[media] = self._stream(events)
            else:
                content[media] = {"schema": {} if kind is bytes else schema_of(kind, self.parts)}
        return content

    def _stream(self, events: Mapping[str, object]) -> dict[str, object]:
        """Return the content of an event stream: the schema of one event, and the schemas of the data by event name.

        An event without a name is a `message`.
        """
        name = {"enum": [*events]} if events else {"type": "string"}
        content: dict[str, object] = {
            "type": "object",
            "description": "One event of the stream.",
            "properties": {"event": name, "data": {"type": "string"}},
            "required": ["event", "data"],
        }
        if not events:
            return {"schema": content}
        return {"schema": content, "x-events": {name: schema_of(data, self.parts) for name, data in events.items()}}

    def _responses(self, route: Route, doc: OperationDoc) -> dict[str, object]:
        if route.kind is RouteKind.WEBSOCKET:
            found: dict[str, object] = {"101": {"description": "WebSocket", **self._messages(doc)}}
        else:
            answers: dict[int | str, SchemaType] = {doc.status: doc.answer, **doc.other_responses}
            found = {str(status): self._answer(status, shape, doc.events) for status, shape in answers.items()}
        name, shape = self.manual.refusal(route.pattern)
        content = {"content": self._content(shape, {})}
        self.refusals.setdefault(name, {"description": "The request was refused.", **content})
        found |= {str(status): {"description": words, **content} for status, words in doc.error_responses.items()}
        return {**found, "default": {"$ref": f"#/components/responses/{name}"}}

    def _messages(self, doc: OperationDoc) -> dict[str, object]:
        def schemas(side: Mapping[str, type]) -> dict[str, JsonSchema]:
            return {name: schema_of(kind, self.parts) for name, kind in side.items()}

        if not doc.server_messages:
            return {}
        return {
            "x-messages": {"from-client": schemas(doc.client_messages), "from-server": schemas(doc.server_messages)}
        }

    def _answer(self, status: int | str, shape: SchemaType, events: Mapping[str, object]) -> dict[str, object]:
        described: dict[str, object] = {
            "description": HTTPStatus(status).phrase if isinstance(status, int) else "Any other status of the phone"
        }
        return described if shape is None else {**described, "content": self._content(shape, events)}


def _requirement(body: SchemaType) -> Mapping[str, object]:
    """Return `required: true` for a body each of whose types has required members; else nothing."""
    kinds = body.values() if isinstance(body, Mapping) else [body]
    return {"required": True} if all(getattr(kind, "__required_keys__", None) for kind in kinds) else {}


def _identity(route: Route) -> str:
    """Return the operation's id, such as `get_sessions_by_token_prefix`."""
    return _APART.sub("_", route.method.lower() + _BRACES.sub(r"by_\1", route.pattern)).strip("_")
