"""Type of a JSON-RPC message, for the API documents of servers with the Model Context Protocol."""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Literal, NotRequired, TypedDict

__all__ = ["RpcMessageJson"]


class RpcMessageJson(TypedDict):
    """A message of JSON-RPC."""

    jsonrpc: Literal["2.0"]
    id: NotRequired[str | int | float | None]
    method: NotRequired[str]
    params: NotRequired[dict[str, object]]
    result: NotRequired[dict[str, object]]
    error: NotRequired[dict[str, object]]
