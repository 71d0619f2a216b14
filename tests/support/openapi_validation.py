"""Validator of responses against a server's OpenAPI document.

Members that a schema does not name are errors, except in the schemas of `OPEN` and in objects without a schema of
their own.

documented = OpenApiValidator.of(book.request("GET", "/openapi.json").body)
documented.check("GET /health", answer)
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Protocol, TypeVar, get_args, is_typeddict

from attrs import define, field
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from svc_proto.engine.router import Route
from svc_proto.openapi.document import JSON
from svc_proto.openapi.operation_doc import ApiDoc, SchemaType
from svc_proto.wire.events import Headers

OPEN = ("Refusal", "VoiceRefusal", "PhoneStatus", "MemoryRefused", "Completion")  # with additional members


class AnswerLike(Protocol):
    """Interface of a response that `OpenApiValidator` can check."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def body(self) -> bytes: ...


ToldT = TypeVar("ToldT", bound=AnswerLike)


@define(eq=False)
class OpenApiValidator:
    document: Mapping[str, Any]
    _validators: dict[str, Draft202012Validator] = field(factory=dict, init=False)

    @classmethod
    def of(cls, body: bytes) -> OpenApiValidator:
        """Return a validator for the document in a response body."""
        return cls(json.loads(body))

    @property
    def operations(self) -> dict[str, Any]:
        """Return the document's operations by route label, such as `GET /health`."""
        return {
            f"{method.upper()} {path}": operation
            for path, item in self.document["paths"].items()
            for method, operation in item.items()
        }

    def expect_routes(self, routes: Iterable[Route]) -> None:
        """Assert that the document has exactly these routes, distinct operation ids, and the tags that its routes use.

        Only the first tag of an operation counts.
        """
        operations = self.operations
        assert sorted(operations) == sorted(route.label for route in routes)
        identities = [operation["operationId"] for operation in operations.values()]
        assert len({*identities}) == len(identities)
        assert {operation["tags"][0] for operation in operations.values()} == {
            theme["name"] for theme in self.document["tags"]
        }

    def check(self, label: str, answer: AnswerLike) -> None:
        """Assert that a response is valid for the route `label`."""
        kind = (answer.headers.get(b"content-type") or b"").decode().partition(";")[0]
        assert self.mistakes(label, answer.status, kind, answer.body) == [], answer

    def mistakes(self, label: str, status: int, media: str, body: bytes) -> list[str]:
        """Return the mistakes of a response: its media type, or errors of its JSON body; none for an empty body.

        Raise KeyError if the document has no response for the status.
        """
        answers = self.operations[label]["responses"]
        told = answers.get(str(status)) or answers["default" if status >= 400 else "2XX"]
        if "$ref" in told:
            told = self.document["components"]["responses"][told["$ref"].rpartition("/")[2]]
        if not body:
            return []
        named = [each for pattern, each in told.get("content", {}).items() if fnmatchcase(media, pattern)]
        if not named or media != "application/json":
            return [] if named else [f"{label} answers {status} with {media}"]
        return [f"{label} answers {status}: {each}" for each in self.misfits(named[0]["schema"], json.loads(body))]

    def misfits(self, schema: Mapping[str, Any], value: object) -> list[str]:
        """Return the errors of a value against a schema of this document.

        Members that `schema` or a component with properties does not name are errors, unless `OPEN` has the component.
        """
        key = json.dumps(schema)
        if key not in self._validators:
            schemas = {name: _closed(name, each) for name, each in self.document["components"]["schemas"].items()}
            whole = {**_closed("", schema), "components": {"schemas": schemas}}
            self._validators[key] = Draft202012Validator(whole)
        errors = self._validators[key].iter_errors(value)
        return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in errors]

    def gets(self) -> list[str]:
        """Return the paths with a GET operation that is no WebSocket."""
        return [
            label.partition(" ")[2]
            for label, operation in self.operations.items()
            if label.startswith("GET ") and "101" not in operation["responses"]
        ]

    def get_and_check(
        self, request: Callable[[str], ToldT], path: str, places: Mapping[str, str], query: str = ""
    ) -> ToldT:
        """GET a path, validate the response, and return it.

        `places` has values for the path's parameters; a missing one is `unknown`.
        """
        target = re.sub(r"{(\w+)}", lambda found: places.get(found[1], "unknown"), path)
        answer = request(target + query)
        self.check(f"GET {path}", answer)
        return answer


def answer_differences(routes: Iterable[Route], manual: ApiDoc) -> list[str]:
    """Return the labels of the routes whose handler names no JSON type, or one that its operation does not document.

    A type with only some of the documented members is accepted. Operations without JSON types are skipped.
    """
    docs = manual.by_label
    found = []
    for route in routes:
        doc = docs[route.label]
        kinds = [kind for shape in (doc.answer, *doc.other_responses.values()) for kind in _json_types(shape)]
        handler = route.handler.args[-1] if isinstance(route.handler, partial) else route.handler
        parts = re.findall(r"JsonResponse\[([\w.| ]+)\]", str(handler.__annotations__.get("return")))
        names = [name for part in parts for name in re.findall(r"\w+Json\b", part)]
        if kinds and not (names and all(any(_is_part(name, kind) for kind in kinds) for name in names)):
            found.append(route.label)
    return found


def _json_types(shape: SchemaType) -> list[type]:
    kind = shape.get(JSON) if isinstance(shape, Mapping) else shape
    return [each for each in (kind, *get_args(kind)) if is_typeddict(each)]


def _is_part(name: str, kind: type) -> bool:
    """Report whether the type `name`, in the module of `kind`, exists, and all its members are typed as in `kind`."""
    part = getattr(sys.modules[kind.__module__], name, None)
    return part is not None and all(kind.__annotations__.get(each) == of for each, of in part.__annotations__.items())


def queries(documented: OpenApiValidator) -> st.SearchStrategy[tuple[str, str]]:
    """Return a strategy of pairs of a documented GET path and a query of known or unknown names with odd values."""
    value = st.sampled_from(["", "0", "1", "-1", "x", "true", "latest", "memory", "%00", "99999999999999999999", "%F0"])

    def named(path: str) -> st.SearchStrategy[tuple[str, str]]:
        told = documented.operations[f"GET {path}"].get("parameters", [])
        names = [each["name"] for each in told if each["in"] == "query"]
        pairs = st.dictionaries(st.sampled_from([*names, "nothing"]), value, max_size=3)
        return pairs.map(lambda found: (path, "?" + "&".join(f"{name}={text}" for name, text in found.items())))

    return st.sampled_from(documented.gets()).flatmap(named)


def _closed(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "properties" not in schema or name in OPEN:
        return schema
    return {**schema, "additionalProperties": False}
