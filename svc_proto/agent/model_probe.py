"""Size of a model's context, from the pages of its server: `/v1/models`, and `/props` of llama.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.agent.model_address import MODELS, endpoint_url, has_plain_layout, root_url
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch
from svc_proto.schema.json_object import JsonObject, as_array, json_value

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["find_context", "probe_context"]

PROBE_TIMEOUT = 3.0  # s for each page
MAX_CONTEXT = 100_000_000  # tokens; a larger number counts as absent
SMALLEST_CONTEXT = 256
# Names of the size in use, the actual one before the model's maximum.
NAMES = (
    "n_ctx", "loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length",
    "max_input_tokens", "inputTokenLimit",
)  # fmt: skip
PLACES = (("meta",), ("default_generation_settings",), ("top_provider",), ())


def probe_context(engine: Engine, endpoint: ModelEndpoint) -> Flow[int | None]:
    """Return the size of the model's context in tokens; None if it is not found.

    It is not looked for if the base URL has a query or names a page.
    """
    if not has_plain_layout(endpoint.base_url):
        return None
    listed = yield from _read(engine, endpoint, endpoint_url(endpoint.base_url, MODELS))
    rows = listed.objects("data")
    own = [row for row in rows if row.text("id") == endpoint.model] or (rows if len(rows) == 1 else [])
    found = next((size for row in own if (size := find_context(row)) is not None), None)
    if found is not None or not rows:
        return found
    return find_context((yield from _read(engine, endpoint, root_url(endpoint.base_url, "props"))))


def find_context(page: JsonObject) -> int | None:
    """Return the context size that an object has under any of the names in use; None if it has no plausible one."""
    for place in PLACES:
        members = page.get_object(*place)
        for name in NAMES:
            size = members.integer(name, SMALLEST_CONTEXT, MAX_CONTEXT)
            if size is not None:
                return size
    return None


def _read(engine: Engine, endpoint: ModelEndpoint, url: str) -> Flow[JsonObject]:
    headers = ((b"accept", b"application/json"), *bearer_header(endpoint.api_key))
    answer = yield from fetch(engine, "GET", url, headers=headers, within=PROBE_TIMEOUT)
    if not isinstance(answer, HttpResult) or answer.status != 200:
        return JsonObject()
    page = json_value(answer.body)
    return JsonObject.of(page if as_array(page) is None else {"data": page})  # some servers list without an object
