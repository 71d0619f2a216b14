"""Profiles of model servers, by address and model, learned from refusals, pages and usage counts."""

from __future__ import annotations

from attrs import define, evolve, fields

from svc_proto.agent.interface import ModelEndpoint

__all__ = ["DEFAULT_TOOL_LIMIT", "ModelProfile", "ModelProfiles"]

MAX_PROFILES = 64  # profiles that are kept; the least recently used is dropped
DEFAULT_TOOL_LIMIT = 128  # tools of one request: the limit of OpenAI's API


@define
class ModelProfile:
    """Profile of one model on one server. The defaults are what OpenAI's API takes."""

    context: int | None = None  # size in tokens; None: unknown
    prompt_limit: int | None = None  # estimated tokens of a request, learned from a refusal without numbers
    density: float = 1.0  # tokens of this model for each estimated one
    probed: bool = False  # the server's pages were read
    tools: bool = True
    tool_limit: int = DEFAULT_TOOL_LIMIT
    images: bool = True
    streams: bool = True
    stream_options: bool = True
    parallel_calls: bool = True  # `parallel_tool_calls` is a known member
    output_member: str = "max_tokens"  # or `max_completion_tokens`
    output_limit: int | None = None  # tokens of one answer
    extra_members: bool = True  # messages may have reasoning and unknown members
    reasoning_everywhere: bool = False  # each assistant message needs its reasoning
    reasoning_member: str = "reasoning_content"  # where it has no name of its own
    system_role: bool = True
    alternates: bool = False  # users and assistants must alternate
    short_ids: bool = False  # ids of calls have nine letters or digits

    def restore(self, saved: ModelProfile) -> None:
        """Set all values to those of another profile."""
        for attribute in fields(ModelProfile):
            setattr(self, attribute.name, getattr(saved, attribute.name))

    def copy(self) -> ModelProfile:
        """Return a copy."""
        return evolve(self)

    def describe(self) -> list[str]:
        """Return what differs from OpenAI's API, a line each, for people."""
        lines = [
            (self.context is not None, f"context of {self.context} tokens"),
            (not self.tools, "takes no tools"),
            (self.tool_limit != DEFAULT_TOOL_LIMIT, f"takes {self.tool_limit} tools at most"),
            (not self.images, "takes no pictures"),
            (not self.streams, "does not stream"),
            (not self.parallel_calls, "does not know parallel_tool_calls"),
            (not self.stream_options, "does not know stream_options"),
            (self.output_member != "max_tokens", f"wants {self.output_member}"),
            (self.output_limit is not None, f"writes {self.output_limit} tokens at most"),
            (not self.extra_members, "takes no reasoning back"),
            (self.reasoning_everywhere, "wants its reasoning back with each message"),
            (not self.system_role, "knows no system messages"),
            (self.alternates, "wants users and assistants to alternate"),
            (self.short_ids, "wants ids of nine letters or digits"),
        ]
        return [line for applies, line in lines if applies]


class ModelProfiles:
    """Profiles by address and model."""

    def __init__(self) -> None:
        self._profiles: dict[tuple[str, str], ModelProfile] = {}  # the last used is last

    def profile_of(self, endpoint: ModelEndpoint) -> ModelProfile:
        """Return the profile of an endpoint."""
        key = endpoint.base_url, endpoint.model
        profile = self._profiles.pop(key, None) or ModelProfile()
        self._profiles[key] = profile
        if len(self._profiles) > MAX_PROFILES:
            del self._profiles[next(iter(self._profiles))]
        return profile
