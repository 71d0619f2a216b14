"""Model options in a body of `/v1/chat/completions`: sampling, response format, the client's own tools.

Options that would change the answer and have no support here, such as `n` above 1 or `audio`, are refused with 400.
Options of a client's account, such as `store` or `service_tier`, have no effect (docs/spec/differences.md).
Unknown members, such as `top_k` or `grammar`, are forwarded to the model's server (wire api 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import field

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api.agent_settings import AgentSettings
from svc_proto.api.content import MessageList
from svc_proto.api.errors import invalid_request
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import boolean, integer, number, optional
from svc_proto.schema.json_object import JsonObject, as_array, as_text

__all__ = ["ClientOptions", "CompletionOptions", "brings_tools", "parse_completion_options", "resolve_options"]

# From OpenAI's reference.
RANGES = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}
LIMITS = ("max_tokens", "max_completion_tokens")  # two names of one limit
MAX_SEED = 2**63 - 1  # of `seed`, in either direction, and of the limits of tokens: 400
MAX_TOOLS = 128  # functions of one request: 400
CHOICES = ("none", "auto", "required")
# Options that no agent of this server supports.
REFUSED = {
    "n": "n must be 1: there is one answer to a request",
    "logprobs": "logprobs must be false: an answer has no probabilities here",
    "top_logprobs": "top_logprobs must be 0: an answer has no probabilities here",
    "functions": "functions are what tools were once: send tools",
    "function_call": "function_call is what tool_choice was once: send tool_choice",
    "audio": "audio cannot be answered here",
}
# Members with a place of their own in this server, and those of an account that change no answer.
NOT_PASSED = (
    *RANGES, *LIMITS, *REFUSED, "seed", "stop", "response_format", "tools", "tool_choice", "parallel_tool_calls",
    "model", "messages", "stream", "stream_options", "user", "store", "metadata", "service_tier", "safety_identifier",
    "prompt_cache_key", "prompt_cache_retention", "profile", "session_id", "modalities",
)  # fmt: skip
MAX_OPTIONS = 64  # further members of a body: 400
# Values without an effect.
IGNORED_VALUES: Mapping[str, tuple[object, ...]] = {"n": (1,), "logprobs": (False,), "top_logprobs": (0,)}


@fast_frozen(kw_only=True)
class CompletionOptions:
    """Checked options. `members` go into each request to the model. `tools` are the client's; None: there are none."""

    members: Mapping[str, object] = field(factory=dict)
    max_tokens: int | None = None
    tools: tuple[Mapping[str, object], ...] | None = None
    no_tools: bool = False  # no tool may be called, our own neither

    @property
    def must_call(self) -> bool:
        """Report whether an answer must contain a tool call."""
        return self.members.get("tool_choice", "auto") not in ("auto", "none")


def parse_completion_options(body: Mapping[str, object]) -> CompletionOptions:
    """Parse the options of a body. Raises `Refused` 400 with the member's name."""
    for name, why in REFUSED.items():
        if body.get(name) is not None and body[name] not in IGNORED_VALUES.get(name, ()):
            raise invalid_request(why, param=name)
    members: dict[str, object] = {}
    for name, (low, high) in RANGES.items():
        if body.get(name) is not None:
            number(body[name], name, low, high)
            members[name] = body[name]
    if body.get("seed") is not None:
        members["seed"] = integer(body["seed"], "seed", -MAX_SEED, MAX_SEED)
    if body.get("stop") is not None:
        members["stop"] = _stop(body["stop"])
    if body.get("response_format") is not None:
        members["response_format"] = _response_format(body["response_format"])
    given = [integer(body[name], name, 1, MAX_SEED) for name in LIMITS if body.get(name) is not None]
    tools = _tools(body.get("tools"))
    members |= _choice(body, tools)
    members |= _others(body)
    return CompletionOptions(
        members=members,
        max_tokens=min(given, default=None),
        tools=tools,
        no_tools=tools is None and body.get("tool_choice") == "none",
    )


def brings_tools(messages: list[object], options: CompletionOptions) -> bool:
    """Report whether the client runs tools itself: it lists tools, or its last message is a tool's result."""
    return options.tools is not None or any(JsonObject.of(row).get("role") == "tool" for row in messages[-1:])


def resolve_options(
    settings: AgentSettings, name: str, options: CompletionOptions, messages: MessageList, *, place: str
) -> ClientOptions:
    """Return the options for a turn with the model `name`.

    If neither an alias `name` nor the settings have an endpoint, the client's tools are dropped. Then raises `Refused`
    400 if `messages` has tool results, or if the options require a tool call. `place`: the body's member with the
    messages.
    """
    endpoint = settings.aliases.get(name, settings.endpoint)
    tools = options.tools or (() if messages.results or options.no_tools else None)
    if tools is not None and endpoint is None:  # the built-in agent calls no tools of a client
        if messages.results or options.must_call:
            text = "tools need a model, and none is configured: set SVC_MODEL_BASE_URL"
            raise invalid_request(text, param=place if options.tools is None else "tools")
        tools = None
    return ClientOptions(
        endpoint=endpoint,
        model=name or settings.name,
        max_tokens=min(filter(None, (settings.max_tokens, options.max_tokens)), default=None),
        options=options.members,
        tools=tools,
    )


@fast_frozen(kw_only=True)
class ClientOptions:
    """Members of a `TurnRequest` that the client's options decide: endpoint, limits, and the client's tools."""

    endpoint: ModelEndpoint | None
    model: str
    max_tokens: int | None
    options: Mapping[str, object]
    tools: tuple[Mapping[str, object], ...] | None


def _others(body: Mapping[str, object]) -> dict[str, object]:
    """Return the members of a body that are passed on to the model's server unchanged.

    Raises `Refused` 400 for more than `MAX_OPTIONS` of them, and for `modalities` other than text.
    """
    if body.get("modalities") not in (None, ["text"]):
        raise invalid_request("modalities must be text: nothing else can be answered here", param="modalities")
    found = {name: value for name, value in body.items() if name not in NOT_PASSED and value is not None}
    if len(found) > MAX_OPTIONS:
        raise invalid_request(f"a request may have at most {MAX_OPTIONS} further options", param=next(reversed(found)))
    return found


def _stop(value: object) -> object:
    words = as_array(value)
    if not all(map(as_text, [value] if words is None else words or [""])):
        raise invalid_request("stop must be a text, or a list of texts", param="stop")
    return value


def _response_format(value: object) -> object:
    if JsonObject.of(value).string("type") is None:
        raise invalid_request("response_format must be an object with a type", param="response_format")
    return value


def _tools(value: object) -> tuple[Mapping[str, object], ...] | None:
    if value is None or value == []:
        return None
    tools = as_array(value)
    if tools is None or len(tools) > MAX_TOOLS:
        raise invalid_request(f"tools must be a list of at most {MAX_TOOLS} functions", param="tools")
    for place, tool in enumerate(map(JsonObject.of, tools)):
        function = tool.object_or_none("function") if tool.get("type") == "function" else None
        if function is None:
            raise invalid_request("a tool must be an object of the type function", param=f"tools[{place}]")
        if not function.text("name"):
            raise invalid_request("a function must have a name", param=f"tools[{place}].function.name")
        if "parameters" in function and function.object_or_none("parameters") is None:
            text = "the parameters of a function must be a JSON schema"
            raise invalid_request(text, param=f"tools[{place}].function.parameters")
    return tuple(cast("list[Mapping[str, object]]", tools))


def _choice(body: Mapping[str, object], tools: tuple[Mapping[str, object], ...] | None) -> Mapping[str, object]:
    """Return the members `tool_choice` and `parallel_tool_calls` for the model, where they are given.

    `tool_choice` is left out if the client has no tools. Raises `Refused` 400 if one of them is invalid, or if
    `tool_choice` needs tools.
    """
    choice, parallel = body.get("tool_choice"), optional(body, "parallel_tool_calls", boolean)
    if choice is not None and choice not in CHOICES and JsonObject.of_or_none(choice) is None:
        raise invalid_request(f"tool_choice must be one of {', '.join(CHOICES)}, or name a tool", param="tool_choice")
    if tools is None:
        if choice not in (None, "none", "auto"):
            raise invalid_request("tool_choice needs tools", param="tool_choice")
        choice = None
    given = {"tool_choice": choice, "parallel_tool_calls": parallel}
    return {name: value for name, value in given.items() if value is not None}
