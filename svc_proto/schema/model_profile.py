"""Profile of one model on one server, and the state file in which an API server keeps the profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

from attrs import define, evolve, fields

from svc_proto.basics import strict_json
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "DEFAULT_PROFILE",
    "DEFAULT_TOOL_LIMIT",
    "PROFILES_FILE",
    "ModelProfile",
    "ProfileKey",
    "encode_profiles",
    "parse_profiles",
]

PROFILES_FILE = "model-profiles.json"  # in the state folder
DEFAULT_TOOL_LIMIT = 128  # tools of one request: the limit of OpenAI's API
MAX_SIZE = 10_000_000  # tokens or tools; a larger number in the file counts as absent
SIZES = ("context", "prompt_limit", "tool_limit", "output_limit")  # members of the file that are numbers
NAMES = ("output_member", "reasoning_member")
KEY_MEMBERS = ("base_url", "model", "configured_context")
NO_FLAGS = ("density", "probed", "learned_at", *SIZES, *NAMES)
ProfileKey = tuple[str, str, int | None]  # base URL, model and configured context: a changed one is learned anew


@define
class ModelProfile:
    """Profile of one model on one server. The defaults describe OpenAI's API."""

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
    learned_at: float | None = None  # epoch seconds of the first lesson

    def restore(self, saved: ModelProfile) -> None:
        """Set all values to those of another profile."""
        for attribute in fields(ModelProfile):
            setattr(self, attribute.name, getattr(saved, attribute.name))

    def copy(self) -> ModelProfile:
        """Return a copy of the profile."""
        return evolve(self)

    def members(self) -> dict[str, object]:
        """Return the values for the state file that differ from the defaults: `SIZES`, `NAMES` and `FLAGS`."""
        values = LESSONS(self)
        if values == DEFAULT_LESSONS:
            return {}
        return {
            name: value
            for name, value, usual in zip((*SIZES, *NAMES, *FLAGS), values, DEFAULT_LESSONS, strict=True)
            if value != usual
        }

    def describe(self) -> list[str]:
        """Return the known size of the context and the main differences from OpenAI's API, a line each, for people."""
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


DEFAULT_PROFILE = ModelProfile()
FLAGS = tuple(each.name for each in fields(ModelProfile) if each.name not in NO_FLAGS)
LESSONS: Callable[[ModelProfile], tuple[object, ...]] = attrgetter(*SIZES, *NAMES, *FLAGS)
DEFAULT_LESSONS = LESSONS(DEFAULT_PROFILE)


def encode_profiles(profiles: Mapping[ProfileKey, ModelProfile]) -> str:
    """Return the text of the state file: `{"profiles": [{"base_url", "model", "configured_context", …}]}`.

    A profile from which nothing was learned is left out.
    """
    rows = [
        {**dict(zip(KEY_MEMBERS, key, strict=True)), "learned_at": profile.learned_at, **members}
        for key, profile in profiles.items()
        if (members := profile.members())
    ]
    return strict_json.dumps({"profiles": rows}) + "\n"


def parse_profiles(text: str) -> dict[ProfileKey, ModelProfile]:
    """Parse the state file. Members of another type or out of bounds, and rows without an address, are left out."""
    found: dict[ProfileKey, ModelProfile] = {}
    for row in JsonObject.parse_or_empty(text).objects("profiles"):
        sizes = {name: row.integer(name, 1, MAX_SIZE) for name in SIZES}
        names = {name: row.first_text(name) for name in NAMES}
        flags = {name: row.boolean(name) for name in FLAGS}
        values = {name: value for name, value in {**sizes, **names, **flags}.items() if value not in (None, "")}
        if row.text("base_url"):
            profile = ModelProfile(learned_at=row.number("learned_at") or 0.0)
            for name, value in values.items():
                setattr(profile, name, value)
            found[row.text("base_url"), row.text("model"), row.integer("configured_context")] = profile
    return found
