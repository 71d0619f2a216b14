from enum import Enum
from typing import Annotated, Any, Required, TypedDict

import pytest
from attrs import evolve
from openapi_spec_validator import validate

from svc_proto.basics import strict_json
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Route, RouteKind
from svc_proto.openapi.document import JSON, build_document, document_json
from svc_proto.openapi.operation_doc import AccessDoc, ApiDoc, OperationDoc
from svc_proto.version import VERSION


class Access(Enum):
    OPEN = "open"
    KEY = "key"


class Thing(TypedDict):
    """A thing."""

    id: str


Fields = TypedDict("Fields", {"X-Key": str}, total=False)


class Refusal(TypedDict):
    """A refusal."""

    error: str


SAYS = {
    "Things": {
        "GET /things/{id}": OperationDoc("A thing", Thing, error_responses={404: "there is none"}),
        "POST /things/{id}": OperationDoc(
            "Change it",
            Thing,
            201,
            body={"multipart/form-data": Thing, "text/plain": str},
            query={"page": Required[int], "like": Annotated[Thing, "one of these"]},
            headers={"X-Key": str},
            other_responses={202: None, "2XX": {"image/*": bytes}},
            details="At once.",
        ),
        "GET /stream": OperationDoc("Told", {"text/event-stream": str}, events={"thing": Thing}),
        "GET /any-stream": OperationDoc("Told", {"text/event-stream": str}),
    },
    "Sockets": {
        "GET /ws": OperationDoc("A socket", client_messages={"say": Thing}, server_messages={"told": Thing}),
        "GET /raw": OperationDoc("Another"),
    },
}
MANUAL = ApiDoc(
    title="A server",
    description="Of things.",
    operations=SAYS,
    access_docs={Access.OPEN: AccessDoc("For every caller."), Access.KEY: AccessDoc("For some.", ("", "key"))},
    schemes={"key": {"type": "http", "scheme": "bearer"}},
    path_parameters={"id": "its id"},
    refusal=lambda path: ("Refused", Refusal),
)


def handler(request: Request) -> Response:
    raise NotImplementedError


def route(method: str, pattern: str, access: Access = Access.OPEN, kind: RouteKind = RouteKind.HTTP) -> Route:
    return Route(method=method, pattern=pattern, access=access, handler=handler, kind=kind)


ROUTES = [
    route("GET", "/things/{id}"),
    route("POST", "/things/{id}", Access.KEY),
    route("GET", "/stream"),
    route("GET", "/any-stream"),
    route("GET", "/ws", kind=RouteKind.WEBSOCKET),
    route("GET", "/raw", kind=RouteKind.WEBSOCKET),
]
THING = {"$ref": "#/components/schemas/Thing"}


@pytest.fixture(scope="module")
def document() -> Any:
    return build_document(ROUTES, MANUAL)


def test_document_is_valid(document: Any) -> None:
    validate(document)
    assert document["openapi"] == "3.1.0"
    assert document["info"] == {"title": "A server", "version": VERSION, "description": "Of things."}
    assert document["tags"] == [{"name": "Things"}, {"name": "Sockets"}]
    assert list(document["paths"]) == ["/things/{id}", "/stream", "/any-stream", "/ws", "/raw"]
    assert list(document["components"]["schemas"]) == ["Thing", "Refusal"]
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    assert "servers" not in document


@pytest.mark.parametrize(
    ("body", "expected"),
    [(Thing, True), ({JSON: Thing}, True), (Fields, None), ({JSON: Thing, "text/plain": str}, None)],
)
def test_body_with_required_members_is_required(body: Any, expected: bool | None) -> None:
    changed = {"GET /things/{id}": OperationDoc("A thing", None, body=body)}
    document: Any = build_document(ROUTES[:1], evolve(MANUAL, operations={"Things": changed}))
    assert document["paths"]["/things/{id}"]["get"]["requestBody"].get("required") is expected


def test_behind_a_proxy() -> None:
    document = {**build_document(ROUTES, MANUAL), "servers": [{"url": "/relay"}]}
    assert strict_json.loads(document_json(ROUTES, MANUAL, "/relay", VERSION)) == document


def test_a_plain_route(document: Any) -> None:
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    assert document["paths"]["/things/{id}"]["get"] == {
        "tags": ["Things"],
        "operationId": "get_things_by_id",
        "summary": "A thing",
        "description": "For every caller.",
        "security": [],
        "parameters": [
            {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "its id",
                "schema": {"type": "string", "minLength": 1},
            }
        ],
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": THING}}},
            "404": {"description": "there is none", "content": refusal},
            "default": {"$ref": "#/components/responses/Refused"},
        },
    }
    refused = {"description": "The request was refused.", "content": refusal}
    assert document["components"]["responses"] == {"Refused": refused}


def test_request_and_responses(document: Any) -> None:
    told = document["paths"]["/things/{id}"]["post"]
    assert told["operationId"] == "post_things_by_id"
    assert told["description"] == "At once.\n\nFor some."
    assert told["security"] == [{}, {"key": []}]
    kinds = {"multipart/form-data": {"schema": THING}, "text/plain": {"schema": {"type": "string"}}}
    assert told["requestBody"] == {"content": kinds}
    assert told["parameters"][1:] == [
        {"name": "page", "in": "query", "required": True, "schema": {"type": "integer"}},
        {"name": "like", "in": "query", "required": False, "schema": {**THING, "description": "one of these"}},
        {"name": "X-Key", "in": "header", "required": False, "schema": {"type": "string"}},
    ]
    assert told["responses"] == {
        "201": {"description": "Created", "content": {"application/json": {"schema": THING}}},
        "202": {"description": "Accepted"},
        "2XX": {"description": "Any other status of the phone", "content": {"image/*": {"schema": {}}}},
        "default": {"$ref": "#/components/responses/Refused"},
    }


def test_a_stream_and_a_socket(document: Any) -> None:
    stream = document["paths"]["/stream"]["get"]
    assert "parameters" not in stream
    assert "requestBody" not in stream
    assert stream["responses"]["200"]["content"] == {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "description": "One event of the stream.",
                "properties": {"event": {"enum": ["thing"]}, "data": {"type": "string"}},
                "required": ["event", "data"],
            },
            "x-events": {"thing": THING},
        }
    }
    any_stream = document["paths"]["/any-stream"]["get"]["responses"]["200"]["content"]["text/event-stream"]
    assert any_stream.keys() == {"schema"}
    assert any_stream["schema"]["properties"]["event"] == {"type": "string"}
    socket = document["paths"]["/ws"]["get"]["responses"]
    messages = {"from-client": {"say": THING}, "from-server": {"told": THING}}
    assert socket["101"] == {"description": "WebSocket", "x-messages": messages}
    assert list(socket) == ["101", "default"]
    assert document["paths"]["/raw"]["get"]["responses"]["101"] == {"description": "WebSocket"}


def test_route_without_documentation_is_an_error() -> None:
    with pytest.raises(KeyError, match="GET /more"):
        build_document([*ROUTES, route("GET", "/more")], MANUAL)
