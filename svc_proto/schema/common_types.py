"""Types of the answers that several servers have: health, readiness and JSON-RPC messages."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from svc_proto.schema.json_schema import schema_keywords

__all__ = ["LivenessJson", "NonNegativeInt", "ReadinessJson", "RpcMessageJson", "UnixTime"]

NonNegativeInt: TypeAlias = Annotated[int, schema_keywords(minimum=0)]
UnixTime: TypeAlias = Annotated[float, "Unix seconds"]


class LivenessJson(TypedDict):
    """Answer of a running process."""

    status: Literal["ok"]


class ReadinessJson(TypedDict):
    """Readiness of the server, with the reasons if not ready."""

    status: Literal["ready", "not ready"]
    reasons: list[str]


class RpcMessageJson(TypedDict):
    """A message of JSON-RPC."""

    jsonrpc: Literal["2.0"]
    id: NotRequired[str | int | float | None]
    method: NotRequired[str]
    params: NotRequired[dict[str, object]]
    result: NotRequired[dict[str, object]]
    error: NotRequired[dict[str, object]]
