"""Questions to a model's server: which models it has, their context sizes, and whether one of them calls tools.

The list is that of the OpenAI API. Context sizes are read from members that some servers add to it, such as
`max_model_len` of vLLM, and from routes of llama.cpp (`/props`), Ollama (`/api/ps`, `/api/show`) and LM Studio
(`/api/v0/models`, `/api/v1/models`). Whether a model calls tools is read from
`/api/show`, or tried.
"""

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, bearer_header, fetch
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, as_array, json_value
from svc_proto.service_clients.model_address import MODELS, endpoint_url, has_plain_layout, root_url

__all__ = [
    "ModelAbilities",
    "ModelListing",
    "ModelTrial",
    "find_abilities",
    "find_context",
    "list_models",
    "probe_context",
    "try_model",
]

LIST_TIMEOUT = 4.0  # s
TRIAL_TIMEOUT = 60.0  # s: a local model may have to be loaded first
MAX_NAMES = 200  # of a list
MAX_ERROR = 200  # characters of a server's error that are shown
TRIAL_TOKENS = 64
MAX_CONTEXT = 100_000_000  # tokens; a larger number counts as absent
SMALLEST_CONTEXT = 256
# Members with a size, the actual one before the model's maximum, and the objects that have them.
CONTEXT_MEMBERS = (
    "n_ctx", "loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length",
    "max_input_tokens", "inputTokenLimit",
)  # fmt: skip
CONTEXT_PLACES = (("meta",), ("default_generation_settings",), ("top_provider",), ())
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
    """The result of one request with a tool. `problem` is empty for a response with status 200."""

    problem: str = ""
    refuses_tools: bool = False
    called_tool: bool = False
    seconds: float = 0.0


def list_models(engine: Engine, base_url: str, key: str) -> Flow[ModelListing]:
    """Return the models that a server lists, at most 200; none with a `problem` if it does not respond."""
    url = endpoint_url(base_url, MODELS)
    answer = yield from fetch(engine, "GET", url, headers=bearer_header(key), within=LIST_TIMEOUT)
    if isinstance(answer, Failure):
        return ModelListing(problem=answer.detail or answer.kind.value.replace("_", " "))
    page = json_value(answer.body)
    listed = JsonObject.of(page if as_array(page) is None else {"data": page})  # some servers list without an object
    rows = [row for row in listed.objects("data") if row.text("id")][:MAX_NAMES]
    return ModelListing(
        names=tuple(row.text("id") for row in rows),
        contexts=tuple((row.text("id"), size) for row in rows if (size := find_context(row)) is not None),
        status=answer.status,
        date=(answer.headers.get(b"date") or b"").decode("latin-1"),
    )


def find_context(page: JsonObject) -> int | None:
    """Return the context size that an object has under a known name; None without a plausible one."""
    for place in CONTEXT_PLACES:
        members = page.get_object(*place)
        for name in CONTEXT_MEMBERS:
            size = members.integer(name, SMALLEST_CONTEXT, MAX_CONTEXT)
            if size is not None:
                return size
    return None


def probe_context(engine: Engine, base_url: str, name: str, key: str) -> Flow[int | None]:
    """Return the size in tokens of the context that a server gives a model; None if the server does not report it.

    A model of Ollama that is not loaded is loaded first, since its size is known only then. The size is not looked for
    if the base URL has a query or names the completions page.
    """
    if not has_plain_layout(base_url):
        return None
    listing = yield from list_models(engine, base_url, key)
    contexts = dict(listing.contexts)
    found = contexts.get(name) or (contexts.get(listing.names[0]) if len(listing.names) == 1 else None)
    if found is not None or not listing.names:
        return found
    found = yield from _llama_cpp_context(engine, base_url, key)
    if found is not None:
        return found
    running = yield from _ollama_context(engine, base_url, name, key)
    if running is None:
        return (yield from _lm_studio_context(engine, base_url, name, key))
    if not running:
        yield from _ask(engine, "POST", root_url(base_url, "api/generate"), key, {"model": name}, within=TRIAL_TIMEOUT)
        running = yield from _ollama_context(engine, base_url, name, key)
    return running or None


def find_abilities(engine: Engine, base_url: str, name: str, key: str, listing: ModelListing) -> Flow[ModelAbilities]:
    """Return the abilities of a model, by the list and the additional routes of its server.

    Without a context in the list, that of a model that Ollama has not loaded is the largest that the model takes.
    """
    context = dict(listing.contexts).get(name)
    shown = yield from _ask(engine, "POST", root_url(base_url, "api/show"), key, {"model": name})
    if shown is not None:
        details = shown.get_object("model_info")
        listed = shown.texts("capabilities")
        sizes = (details.integer(member) for member in details if member.endswith(".context_length"))
        running = yield from _ollama_context(engine, base_url, name, key)
        found = running or context or next((size for size in sizes if size), None)
        return ModelAbilities(has_tools="tools" in listed if listed else None, context=found)
    if context is None:
        context = yield from _llama_cpp_context(engine, base_url, key)
    if context is None:
        context = yield from _lm_studio_context(engine, base_url, name, key)
    return ModelAbilities(context=context)


def try_model(engine: Engine, base_url: str, name: str, key: str) -> Flow[ModelTrial]:
    """Send a model one short request with a tool; return whether it called the tool, or why it did not answer."""
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
    url = endpoint_url(base_url)
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


def _llama_cpp_context(engine: Engine, base_url: str, key: str) -> Flow[int | None]:
    """Return the context size in the page `/props` of llama.cpp; None without one."""
    return find_context((yield from _ask(engine, "GET", root_url(base_url, "props"), key)) or JsonObject())


def _ollama_context(engine: Engine, base_url: str, name: str, key: str) -> Flow[int | None]:
    """Return the context size of a model as Ollama has loaded it, 0 if none is listed; None without a list of models.

    This size may be smaller than that in the model's file.
    """
    running = yield from _ask(engine, "GET", root_url(base_url, "api/ps"), key)
    if running is None or as_array(running.get("models")) is None:
        return None
    own = (row for row in running.objects("models") if row.text("name") in (name, f"{name}:latest"))
    return next((size for row in own if (size := row.integer("context_length", 1)) is not None), 0)


def _lm_studio_context(engine: Engine, base_url: str, name: str, key: str) -> Flow[int | None]:
    """Return the context size of a model as LM Studio has loaded it; None if no size is listed.

    LM Studio 0.4 and later has the second route, older versions have only the first.
    """
    listed = (yield from _ask(engine, "GET", root_url(base_url, "api/v0/models"), key)) or JsonObject()
    for row in listed.objects("data"):
        if row.text("id") == name and (size := row.integer("loaded_context_length", 1)) is not None:
            return size
    listed = (yield from _ask(engine, "GET", root_url(base_url, "api/v1/models"), key)) or JsonObject()
    for row in listed.objects("models"):
        for loaded in row.objects("loaded_instances"):
            if name in (row.text("key"), loaded.text("id")):
                return loaded.get_object("config").integer("context_length", 1)
    return None


def _ask(
    engine: Engine,
    method: str,
    url: str,
    key: str,
    body: dict[str, object] | None = None,
    *,
    within: float = LIST_TIMEOUT,
) -> Flow[JsonObject | None]:
    data = b"" if body is None else strict_json.dumps_bytes(body)
    headers = (JSON, *bearer_header(key))
    answer = yield from fetch(engine, method, url, headers=headers, body=data, within=within)
    if isinstance(answer, Failure) or answer.status != 200:
        return None
    return answer.members


def _error_text(answer: HttpResult) -> str:
    error = answer.members.get_object("error").text("message") or answer.members.text("error")
    text = error or answer.body[:MAX_ERROR].decode("utf-8", "replace")
    return " ".join(text.split())[:MAX_ERROR]
