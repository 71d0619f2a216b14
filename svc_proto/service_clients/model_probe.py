"""Questions to a model's server: which models it has, their context sizes, and whether one of them calls tools.

The list is that of the OpenAI API. Context sizes are read from members that some servers add to it, such as
`max_model_len` of vLLM, and from routes of Ollama (`/api/show`, `/api/ps`) and llama.cpp (`/props`). Only Ollama lists
whether a model calls tools.
"""

from __future__ import annotations

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject

__all__ = ["ModelAbilities", "ModelListing", "ModelTrial", "find_abilities", "list_models", "try_model"]

LIST_TIMEOUT = 4.0  # s
TRIAL_TIMEOUT = 60.0  # s: a local model may have to be loaded first
MAX_NAMES = 200  # of a list
MAX_ERROR = 200  # characters of a server's error that are shown
TRIAL_TOKENS = 64
CONTEXT_MEMBERS = ("context_length", "max_model_len", "loaded_context_length", "max_context_length", "context_window")
JSON = (b"content-type", b"application/json")
TOOL = {
    "type": "function",
    "function": {
        "name": "report_ready",
        "description": "Report that the model is ready.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}


@frozen(kw_only=True)
class ModelListing:
    """The models of a server. `problem` is the reason of a missing response; `status` is that of the list."""

    names: tuple[str, ...] = ()
    contexts: tuple[tuple[str, int], ...] = ()  # names with their context sizes in tokens, where the list has them
    problem: str = ""
    status: int = 0
    date: str = ""  # the server's `Date`


@frozen(kw_only=True)
class ModelAbilities:
    """Abilities of a model as its server reports them; None: unknown."""

    has_tools: bool | None = None
    context: int | None = None


@frozen(kw_only=True)
class ModelTrial:
    """The result of one request with a tool. `problem` is empty if the model answered."""

    problem: str = ""
    refuses_tools: bool = False
    called_tool: bool = False
    seconds: float = 0.0


def list_models(engine: Engine, base_url: str, key: str) -> Flow[ModelListing]:
    """Return the models that a server lists, at most 200; none with a `problem` if it does not respond."""
    answer = yield from fetch(engine, "GET", f"{base_url}/models", headers=bearer_header(key), within=LIST_TIMEOUT)
    if isinstance(answer, Failure):
        return ModelListing(problem=answer.detail or answer.kind.value.replace("_", " "))
    rows = [row for row in answer.members.objects("data") if row.text("id")][:MAX_NAMES]
    return ModelListing(
        names=tuple(row.text("id") for row in rows),
        contexts=tuple((row.text("id"), size) for row in rows if (size := _context(row)) is not None),
        status=answer.status,
        date=(answer.headers.get(b"date") or b"").decode("latin-1"),
    )


def find_abilities(engine: Engine, base_url: str, name: str, key: str, listing: ModelListing) -> Flow[ModelAbilities]:
    """Return the abilities of a model, by the list and the additional routes of its server."""
    root = base_url.removesuffix("/v1")
    context = dict(listing.contexts).get(name)
    shown = yield from _ask(engine, "POST", f"{root}/api/show", key, {"model": name})
    if shown is not None:
        details = shown.get_object("model_info")
        listed = shown.texts("capabilities")
        sizes = (details.integer(member) for member in details if member.endswith(".context_length"))
        running = yield from _running_context(engine, root, name, key)
        found = running or context or next((size for size in sizes if size), None)
        return ModelAbilities(has_tools="tools" in listed if listed else None, context=found)
    if context is None:
        props = yield from _ask(engine, "GET", f"{root}/props", key)
        settings = JsonObject() if props is None else props.get_object("default_generation_settings")
        context = settings.integer("n_ctx", 1)
    return ModelAbilities(context=context)


def try_model(engine: Engine, base_url: str, name: str, key: str) -> Flow[ModelTrial]:
    """Send a model one short request with a tool; return whether and how it answered."""
    body = {
        "model": name,
        "messages": [{"role": "user", "content": "Call the tool report_ready now."}],
        "tools": [TOOL],
        "max_tokens": TRIAL_TOKENS,
        "stream": False,
    }
    began = engine.now.mono
    headers = (JSON, *bearer_header(key))
    data = strict_json.dumps_bytes(body)
    url = f"{base_url}/chat/completions"
    answer = yield from fetch(engine, "POST", url, headers=headers, body=data, within=TRIAL_TIMEOUT)
    took = engine.now.mono - began
    if isinstance(answer, Failure):
        return ModelTrial(problem=answer.detail or answer.kind.value.replace("_", " "), seconds=took)
    if answer.status != 200:
        said = _error_text(answer)
        refuses = answer.status in (400, 404, 422, 500, 501) and "tool" in said.lower()
        return ModelTrial(problem=f"status {answer.status}: {said}".rstrip(": "), refuses_tools=refuses, seconds=took)
    choices = answer.members.objects("choices")
    called = bool(choices) and bool(choices[0].get_object("message").objects("tool_calls"))
    return ModelTrial(called_tool=called, seconds=took)


def _running_context(engine: Engine, root: str, name: str, key: str) -> Flow[int | None]:
    """Return the context size of a model as Ollama has loaded it; None if it is not loaded, or for another server.

    This size may be smaller than that in the model's file.
    """
    running = yield from _ask(engine, "GET", f"{root}/api/ps", key)
    if running is None:
        return None
    rows = running.objects("models")
    return next(
        (row.integer("context_length", 1) for row in rows if row.text("name") in (name, f"{name}:latest")), None
    )


def _ask(
    engine: Engine, method: str, url: str, key: str, body: dict[str, object] | None = None
) -> Flow[JsonObject | None]:
    data = b"" if body is None else strict_json.dumps_bytes(body)
    headers = (JSON, *bearer_header(key))
    answer = yield from fetch(engine, method, url, headers=headers, body=data, within=LIST_TIMEOUT)
    if isinstance(answer, Failure) or answer.status != 200:
        return None
    return answer.members


def _context(row: JsonObject) -> int | None:
    sizes = [row.integer(name, 1) for name in CONTEXT_MEMBERS]
    sizes.append(row.get_object("meta").integer("n_ctx", 1))
    return next((size for size in sizes if size is not None), None)


def _error_text(answer: HttpResult) -> str:
    error = answer.members.get_object("error").text("message") or answer.members.text("error")
    text = error or answer.body[:MAX_ERROR].decode("utf-8", "replace")
    return " ".join(text.split())[:MAX_ERROR]
