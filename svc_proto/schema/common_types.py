"""Types of the answers that several servers have: health, readiness and JSON-RPC messages."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Literal, NotRequired, TypedDict

__all__ = ["LivenessJson", "ReadinessJson", "RpcMessageJson"]


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
