"""Options of a client for one turn, for the routes of OpenAI's protocols: endpoint, limits, and the client's tools."""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api.agent_settings import AgentSettings
from svc_proto.api.completion_options import CompletionOptions
from svc_proto.api.content import MessageList
from svc_proto.api.errors import invalid_request
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject

__all__ = ["ClientOptions", "brings_tools", "resolve_options"]


@fast_frozen(kw_only=True)
class ClientOptions:
    """Members of a `TurnRequest` that the client's options decide."""

    endpoint: ModelEndpoint | None
    model: str
    max_tokens: int | None
    options: Mapping[str, object]
    tools: tuple[Mapping[str, object], ...] | None


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


def brings_tools(messages: list[object], options: CompletionOptions) -> bool:
    """Report whether the client runs tools itself: it lists tools, or its last message is a tool's result."""
    return options.tools is not None or any(JsonObject.of(row).get("role") == "tool" for row in messages[-1:])
