"""Shaping of a request for one model's server, by its profile, and learning from the server's refusals.

    request, notice = shaper.shape(request)     # before each attempt
    shaper.learn(refusal, request)              # after a refusal: None if no other form is left to try

A lesson is kept if the call succeeds in the end. The messages of the request are never changed in place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from svc_proto.agent.context_window import FittedMessages, Row, estimate_tokens, fit_messages
from svc_proto.agent.message_shapes import (
    alternate_roles,
    fold_system,
    has_extras,
    has_images,
    shorten_ids,
    strip_extras,
    with_reasoning,
    without_images,
    without_tool_rows,
)
from svc_proto.agent.model_refusal import OUTPUT_MEMBERS, ModelRefusal, Problem
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.model_profile import ModelProfile

__all__ = ["RequestShaper"]

IMAGE_REFUSALS = (400, 404, 413, 415, 422, 500, 501)  # statuses by which servers refuse images without a word of them
OUTPUT_NAMES = frozenset(OUTPUT_MEMBERS)
STEP_BACK = 0.7  # share of the estimated tokens that the next request may have, where the server names no limit
SMALLEST_PROMPT = 200  # estimated tokens; a request is not made smaller
SMALLEST_ANSWER = 256  # tokens that are left for an answer
BOUNDED_CONTEXT = 65_536  # tokens; with a smaller context each answer is bounded
MAX_DENSITY = 3.0  # tokens for each estimated one; a larger ratio counts as this
NO_TOOLS = "[The model's server takes no tools: the chat goes on without them.]"
NO_IMAGES = "[The model's server takes no pictures: it gets a line in the place of each.]"


class RequestShaper:
    """Shaper of the requests of one turn. `turn_start` is the place of the turn's first message.

    With `keeps_tools`, no refusal makes the shaper drop tools. `reduce_tools` makes the list of tools smaller, in
    place, if it can: to a number of tools, or to few.
    """

    def __init__(
        self,
        profile: ModelProfile,
        *,
        turn_start: int = 0,
        keeps_tools: bool = False,
        reduce_tools: Callable[[int | None], bool] = lambda limit: False,
    ) -> None:
        self._profile = profile
        self._turn_start = turn_start
        self._keeps_tools = keeps_tools
        self._reduce_tools = reduce_tools
        self._saved: ModelProfile | None = None  # the profile before the lessons since the last answer, if any
        self._sent: tuple[Sequence[Row], Sequence[Row]] = ((), ())  # messages and tools of the last shaped request
        self._estimate: int | None = None  # see `estimate`
        self._drops_tools = False  # for this turn: nothing else makes the request small enough
        self._told = 0  # messages and results whose loss was reported
        self._notices: list[str] = []

    @property
    def estimate(self) -> int:
        """Return the estimated tokens of the last shaped request. They are counted at the first use."""
        if self._estimate is None:
            self._estimate = sum(estimate_tokens(list(part)) for part in self._sent)
        return self._estimate

    def shape(self, request: Mapping[str, object]) -> tuple[dict[str, object], str]:
        """Return a request in the form of the server's profile, and a notice of new omissions, or an empty text.

        Messages are left out or shortened if they exceed the profile's limit or context.
        """
        profile = self._profile
        tools = list(cast("Sequence[Row]", request.get("tools") or ()))
        if not self._keeps_tools:
            del tools[profile.tool_limit if profile.tools and not self._drops_tools else 0 :]
        shaped = dict(request)
        asked = _limit_of(request)
        for name in OUTPUT_MEMBERS:
            shaped.pop(name, None)
        rows = self._fit(cast("Sequence[Row]", request["messages"]), tools, asked)
        shaped["messages"] = self._reshape(rows, with_tools=bool(tools))
        if tools:
            shaped["tools"] = tools
        else:
            shaped.pop("tools", None)
            shaped.pop("tool_choice", None)
            shaped.pop("parallel_tool_calls", None)
        if not profile.parallel_calls:
            shaped.pop("parallel_tool_calls", None)
        if not profile.stream_options or not profile.streams:
            shaped.pop("stream_options", None)
        if not profile.streams:
            shaped["stream"] = False
        bound = self._bound(asked)
        if bound is not None:
            shaped[profile.output_member] = bound
        if not self._notices:
            return shaped, ""
        notice, self._notices = "\n".join(self._notices), []
        return shaped, notice

    def learn(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> Problem | None:
        """Adapt the profile to a refusal.

        Return the first of its problems for which there is another form of the request, or None if there is none.
        """
        self._saved = self._saved or self._profile.copy()
        for problem in refusal.problems:
            if self._apply(problem, refusal, sent):
                return problem
        if refusal.status in IMAGE_REFUSALS and self._apply(Problem.IMAGES, refusal, sent):
            return Problem.IMAGES
        return None

    def confirm(self, input_tokens: int) -> None:
        """Make the changes of the profile permanent, since the server has answered.

        If the context's size is known, the profile's `density` rises to the ratio of `input_tokens` to the estimate, up
        to `MAX_DENSITY`, but not for a request with images or of at most `SMALLEST_PROMPT` estimated tokens.
        """
        profile = self._profile
        if profile.context is not None and self.estimate > SMALLEST_PROMPT and not has_images(self._sent[0]):
            ratio = min(input_tokens / self.estimate, MAX_DENSITY)
            profile.density = max(profile.density, ratio)
        self._saved = None

    def forget(self) -> None:
        """Restore the profile as it was before the refusals since the last answer."""
        if self._saved is not None:
            self._profile.restore(self._saved)
            self._saved = None

    # --- shape ---

    def _fit(self, rows: Sequence[Row], tools: Sequence[Row], asked: int | None) -> Sequence[Row]:
        profile = self._profile
        self._sent, self._estimate = (rows, tools), None
        limit = profile.prompt_limit
        if profile.context is not None:
            reserve = max(
                min(asked or profile.context // 4, profile.context // 4), min(SMALLEST_ANSWER, profile.context // 4)
            )
            by_context = int((profile.context - reserve) / profile.density)
            limit = by_context if limit is None else min(limit, by_context)
        if limit is None or self.estimate <= limit:
            return rows
        fitted = fit_messages(rows, limit - estimate_tokens(list(tools)), self._turn_start)
        self._sent, self._estimate = (fitted.rows, tools), None
        lost = fitted.left_out + fitted.shortened + bool(fitted.steps)  # steps are reported once
        if lost > self._told:
            self._told = lost
            self._notices.append(_loss(fitted))
        return fitted.rows

    def _reshape(self, rows: Sequence[Row], *, with_tools: bool) -> list[Row]:
        profile = self._profile
        shaped = list(rows)
        if not profile.images:
            shaped = without_images(shaped)
        if not profile.extra_members:
            shaped = strip_extras(shaped)
        elif profile.reasoning_everywhere:
            shaped = with_reasoning(shaped, profile.reasoning_member)
        if not with_tools and not profile.tools:
            shaped = without_tool_rows(shaped)
        elif profile.short_ids:
            shaped = shorten_ids(shaped)
        if not profile.system_role:
            shaped = fold_system(shaped)
        return alternate_roles(shaped) if profile.alternates else shaped

    def _bound(self, asked: int | None) -> int | None:
        """Return the limit on the tokens of the answer; None for no limit.

        With a caller's limit `asked`, the limit is the least of it, the server's limit, and the room that the request
        leaves in the context, which has a lower bound. Without one, only a context smaller than `BOUNDED_CONTEXT`
        limits the answer, to at most a quarter of the context.
        """
        profile = self._profile
        context = profile.context
        if asked is None and context is None:
            return None
        limits = [each for each in (asked, profile.output_limit if asked else None) if each is not None]
        if context is not None and (asked is not None or context < BOUNDED_CONTEXT):
            left = context - int(self.estimate * profile.density)
            limits.append(max(left, min(SMALLEST_ANSWER, context // 4)))
            if asked is None:
                limits.append(max(context // 4, 1))
        return min(limits, default=None)

    # --- learn ---

    def _apply(self, problem: Problem, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        apply = _LESSONS.get(problem)
        return apply is not None and apply(self, refusal, sent)

    def _learn_context(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        profile, estimate = self._profile, self.estimate
        limit, size = refusal.limit, refusal.size
        is_known = profile.context is not None and (limit is None or limit >= profile.context)
        if limit is not None and (size is None or limit < size):
            profile.context = limit if profile.context is None else min(limit, profile.context)
        if size is not None and estimate:
            profile.density = min(max(profile.density, size / estimate), MAX_DENSITY)
        if limit is None or is_known:  # the server's number did not help
            profile.prompt_limit = int(min(estimate, profile.prompt_limit or estimate) * STEP_BACK)
        if profile.prompt_limit is not None and profile.prompt_limit < SMALLEST_PROMPT:
            return False
        if "tools" in sent and not self._keeps_tools:
            tools = estimate_tokens(list(cast("Sequence[Row]", sent["tools"])))
            room = profile.prompt_limit or (profile.context or 0) * 3 // 4
            if tools * profile.density * 2 > room and not self._reduce_tools(None):
                self._drops_tools = self._drops_tools or bool(tools * profile.density > room)
        return True

    def _learn_output_limit(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        asked = _limit_of(sent)
        if asked is None:
            return False
        limit = refusal.limit if refusal.limit is not None and refusal.limit < asked else asked // 2
        self._profile.output_limit = limit
        return limit > 0

    def _learn_tool_count(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        count = len(cast("Sequence[Row]", sent.get("tools") or ()))
        if not count or self._keeps_tools:
            return False
        limit = refusal.limit if refusal.limit is not None and refusal.limit < count else count // 2
        self._profile.tool_limit = max(limit, 1)
        self._reduce_tools(self._profile.tool_limit)
        return limit > 0

    def _learn_tools(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if "tools" not in sent or self._keeps_tools:
            return False
        self._profile.tools = False
        self._notices.append(NO_TOOLS)
        return True

    def _learn_images(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if not has_images(cast("Sequence[Row]", sent["messages"])):
            return False
        self._profile.images = False
        self._notices.append(NO_IMAGES)
        return True

    def _learn_missing_reasoning(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        profile = self._profile
        if profile.reasoning_everywhere and profile.extra_members:
            return False
        profile.reasoning_everywhere = profile.extra_members = True
        if "reasoning_content" not in refusal.words:
            profile.reasoning_member = next((name for name in ("reasoning", "thinking") if name in refusal.words), "")
            profile.reasoning_member = profile.reasoning_member or "reasoning_content"
        return True

    def _learn_extras(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if not has_extras(cast("Sequence[Row]", sent["messages"])):
            return False
        self._profile.extra_members = False
        return True

    def _learn_roles(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if self._profile.alternates:
            return False
        self._profile.alternates = True
        return True

    def _learn_system(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if not any(row["role"] == "system" for row in cast("Sequence[Row]", sent["messages"])):
            return False
        self._profile.system_role = False
        return True

    def _learn_ids(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if self._profile.short_ids:
            return False
        self._profile.short_ids = True
        return True

    def _learn_output_member(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        profile = self._profile
        if profile.output_member not in sent:
            return False
        profile.output_member = OUTPUT_MEMBERS[profile.output_member == OUTPUT_MEMBERS[0]]
        return True

    def _learn_stream(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if sent.get("stream") is not True:
            return False
        self._profile.streams = False
        return True

    def _learn_stream_options(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if "stream_options" not in sent:
            return False
        self._profile.stream_options = False
        return True

    def _learn_parallel_calls(self, refusal: ModelRefusal, sent: Mapping[str, object]) -> bool:
        if "parallel_tool_calls" not in sent:
            return False
        self._profile.parallel_calls = False
        return True


_LESSONS: Mapping[Problem, Callable[[RequestShaper, ModelRefusal, Mapping[str, object]], bool]] = {
    Problem.CONTEXT: RequestShaper._learn_context,
    Problem.OUTPUT_LIMIT: RequestShaper._learn_output_limit,
    Problem.TOOL_COUNT: RequestShaper._learn_tool_count,
    Problem.TOOL_IDS: RequestShaper._learn_ids,
    Problem.REASONING_MISSING: RequestShaper._learn_missing_reasoning,
    Problem.EXTRA_MEMBERS: RequestShaper._learn_extras,
    Problem.ROLE_ORDER: RequestShaper._learn_roles,
    Problem.SYSTEM_ROLE: RequestShaper._learn_system,
    Problem.IMAGES: RequestShaper._learn_images,
    Problem.TOOLS: RequestShaper._learn_tools,
    Problem.PARALLEL_TOOL_CALLS: RequestShaper._learn_parallel_calls,
    Problem.STREAM_OPTIONS: RequestShaper._learn_stream_options,
    Problem.STREAM: RequestShaper._learn_stream,
    Problem.MAX_TOKENS: RequestShaper._learn_output_member,
    Problem.MAX_COMPLETION_TOKENS: RequestShaper._learn_output_member,
}


def _limit_of(request: Mapping[str, object]) -> int | None:
    if OUTPUT_NAMES.isdisjoint(request):
        return None
    members = JsonObject.of(request)
    return next((limit for name in OUTPUT_MEMBERS if (limit := members.integer(name)) is not None), None)


def _loss(fitted: FittedMessages) -> str:
    parts: list[str] = []
    if fitted.left_out:
        parts.append(f"left out the oldest messages of this chat: {fitted.left_out}")
    if fitted.steps:
        parts.append("the oldest steps of this task are left out")
    if fitted.shortened:
        parts.append(f"shortened results of tools: {fitted.shortened}")
    return f"[The chat is longer than the model's context; {', '.join(parts)}.]"
