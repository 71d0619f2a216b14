from typing import Any

import pytest

from svc_proto.agent.context_window import estimate_tokens
from svc_proto.agent.interface import ModelEndpoint, TurnNotice, TurnOutcome
from svc_proto.agent.message_shapes import IMAGE_NOT_TAKEN
from svc_proto.agent.model_client import MAX_LESSONS
from svc_proto.agent.model_refusal import ModelRefusal, Problem, parse_refusal
from svc_proto.agent.request_shaper import NO_TOOLS, SMALLEST_PROMPT, RequestShaper
from svc_proto.schema.model_profile import ModelProfile
from tests.agent.harness import ROUTE, AgentHarness
from tests.support.servers.model_server import calls, plain, refusal

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
TOOLS = [{**TOOL, "description": "x" * 7_000}]
IMAGE = {"type": "image_url", "image_url": {"url": "data:,x"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}, "extra_content": {"s": 1}}
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Look"}, IMAGE]},
    {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "42"},
    {"role": "user", "content": "And?"},
    {"role": "user", "content": "Well?"},
]
REQUEST = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": CHAT,
    "tools": [TOOL, TOOL],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "max_tokens": 900,
}


def shaped(profile: ModelProfile, **members: object) -> dict[str, Any]:
    request, _ = RequestShaper(profile, turn_start=4).shape({**REQUEST, **members})
    return request


def test_request_of_an_unknown_server_is_unchanged() -> None:
    assert shaped(ModelProfile()) == REQUEST


@pytest.mark.parametrize(
    ("profile", "absent", "changed"),
    [
        (ModelProfile(parallel_calls=False), {"parallel_tool_calls"}, {}),
        (ModelProfile(stream_options=False), {"stream_options"}, {}),
        (ModelProfile(streams=False), {"stream_options"}, {"stream": False}),
        (ModelProfile(output_member="max_completion_tokens"), {"max_tokens"}, {"max_completion_tokens": 900}),
        (ModelProfile(output_limit=512), set(), {"max_tokens": 512}),
        (ModelProfile(tool_limit=1), set(), {"tools": [TOOL]}),
    ],
)
def test_members(profile: ModelProfile, absent: set[str], changed: dict[str, object]) -> None:
    expected = {name: value for name, value in REQUEST.items() if name not in absent} | changed
    assert shaped(profile) == expected


def test_messages() -> None:
    rows = shaped(ModelProfile(images=False, extra_members=False, system_role=False, alternates=True))["messages"]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "user"]
    assert rows[0]["content"] == f"Be kind.\n\nLook\n{IMAGE_NOT_TAKEN}"
    assert {*rows[1]} == {"role", "content", "tool_calls"}
    assert {*rows[1]["tool_calls"][0]} == {"id", "type", "function"}
    rows = shaped(ModelProfile(reasoning_everywhere=True, short_ids=True))["messages"]
    assert rows[2]["reasoning_content"] == "hm"
    assert rows[2]["tool_calls"][0]["id"] == rows[3]["tool_call_id"] != "call_1"
    request = shaped(ModelProfile(tools=False))
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(request)
    assert [row["role"] for row in request["messages"]] == ["system", "user", "assistant", "user", "user", "user"]


@pytest.mark.parametrize(
    ("context", "asked", "bound"),
    [(4096, 900, 900), (4096, 4000, 2984), (4096, None, 1024), (1200, None, 300), (600, 900, 511), (2**16, None, None)],
)
def test_bound_of_an_answer_fits_the_context(context: int, asked: int | None, bound: int | None) -> None:
    request = shaped(ModelProfile(context=context), max_tokens=asked)
    assert request.get("max_tokens") == pytest.approx(bound, abs=60)


def test_known_context_leaves_out_old_turns() -> None:
    rows = [{"role": "user", "content": "x" * 3_500}, {"role": "assistant", "content": "y" * 3_500}] * 3
    request = {"messages": [*rows, {"role": "user", "content": "now"}]}
    shaper = RequestShaper(ModelProfile(context=4_096), turn_start=6)
    sent, notice = shaper.shape(request)
    assert len(sent["messages"]) == 3  # type: ignore[arg-type]  # a list
    assert notice == "[The chat is longer than the model's context; left out the oldest messages of this chat: 4.]"
    assert shaper.shape(request)[1] == ""  # one notice
    result = {"role": "tool", "content": "z" * 20_000}
    _, notice = shaper.shape({"messages": [*request["messages"], result]})
    assert notice.endswith("left out the oldest messages of this chat: 6, shortened results of tools: 1.]")


def test_what_is_left_out_is_reported() -> None:
    rows: list[object] = [{"role": "user", "content": "now"}, {"role": "tool", "content": "z" * 20_000}]
    _, notice = RequestShaper(ModelProfile(context=4_096)).shape({"messages": rows})
    assert notice == "[The chat is longer than the model's context; shortened results of tools: 1.]"
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "x" * 1_000}}
    step = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "1"}]
    _, notice = RequestShaper(ModelProfile(context=4_096)).shape({"messages": [rows[0], *step * 20]})
    assert notice == "[The chat is longer than the model's context; the oldest steps of this task are left out.]"


EVERYWHERE: dict[str, object] = {"reasoning_everywhere": True}


def learn(profile: ModelProfile, status: int, text: str, **members: object) -> Problem | None:
    shaper = RequestShaper(profile, turn_start=4, keeps_tools=bool(members.pop("keeps_tools", False)))
    sent, _ = shaper.shape({**REQUEST, **members})
    return shaper.learn(parse_refusal(status, text, sent), sent)


@pytest.mark.parametrize(
    ("text", "learned", "profile"),
    [
        ("tools are not supported", Problem.TOOLS, {"tools": False}),
        ("no images please", Problem.IMAGES, {"images": False}),
        ("roles must alternate", Problem.ROLE_ORDER, {"alternates": True}),
        ("System role not supported", Problem.SYSTEM_ROLE, {"system_role": False}),
        ("tool_call_id must match a-z", Problem.TOOL_IDS, {"short_ids": True}),
        ("parallel_tool_calls is unknown", Problem.PARALLEL_TOOL_CALLS, {"parallel_calls": False}),
        ("stream_options is unknown", Problem.STREAM_OPTIONS, {"stream_options": False}),
        ("streaming is not supported", Problem.STREAM, {"streams": False}),
        ("max_tokens: use max_completion_tokens", Problem.MAX_TOKENS, {"output_member": "max_completion_tokens"}),
        ("max_tokens is too large, at most 512", Problem.OUTPUT_LIMIT, {"output_limit": 512}),
        ("max_tokens is too large", Problem.OUTPUT_LIMIT, {"output_limit": 450}),
        ("unknown member reasoning_content", Problem.EXTRA_MEMBERS, {"extra_members": False}),
        ("reasoning_content is missing", Problem.REASONING_MISSING, EVERYWHERE),
        ("reasoning is missing", Problem.REASONING_MISSING, {**EVERYWHERE, "reasoning_member": "reasoning"}),
        ("signature is missing", Problem.REASONING_MISSING, EVERYWHERE),
        ("at most 1 tools", Problem.TOOL_COUNT, {"tool_limit": 1}),
        ("too many tools", Problem.TOOL_COUNT, {"tool_limit": 1}),
        ("the context window of 3000 tokens is exceeded", Problem.CONTEXT, {"context": 3_000}),
        ("prompt of 9000 tokens exceeds the context of 3000", Problem.CONTEXT, {"context": 3_000, "density": 3.0}),
        ("bad", Problem.IMAGES, {"images": False}),
    ],
)
def test_lessons(text: str, learned: Problem, profile: dict[str, object]) -> None:
    known = ModelProfile()
    assert learn(known, 400, text) is learned
    assert known == ModelProfile(**profile)  # type: ignore[arg-type]  # its fields


@pytest.mark.parametrize("text", ["tools are not supported", "at most 1 tools"])
def test_tools_of_a_client_are_not_dropped(text: str) -> None:
    messages = [{"role": "user", "content": "a"}]
    assert learn(ModelProfile(), 400, text, keeps_tools=True, messages=messages) is None


@pytest.mark.parametrize("profile", [ModelProfile(tools=False), ModelProfile(tool_limit=1)])
def test_what_earlier_turns_learned_drops_no_tools_of_a_client(profile: ModelProfile) -> None:
    request = {**REQUEST, "tools": [{"type": "function", "function": {"name": name}} for name in "ab"]}
    sent, notice = RequestShaper(profile, keeps_tools=True).shape(request)
    assert (sent["tools"], sent["tool_choice"], notice) == (request["tools"], REQUEST["tool_choice"], "")


TEACHING = (Problem.TOOL_IDS, Problem.ROLE_ORDER, Problem.REASONING_MISSING, Problem.CONTEXT)  # of any request


@pytest.mark.parametrize(
    ("problem", "known"),
    [
        (Problem.TOOL_IDS, {"short_ids": True}),
        (Problem.ROLE_ORDER, {"alternates": True}),
        (Problem.REASONING_MISSING, EVERYWHERE),
        (Problem.CONTEXT, {"prompt_limit": 1}),
        *((problem, {}) for problem in Problem if problem not in TEACHING),
    ],
)
def test_refusal_of_what_was_not_sent_teaches_nothing(problem: Problem, known: dict[str, Any]) -> None:
    shaper = RequestShaper(ModelProfile(**known))
    sent, _ = shaper.shape({"messages": [{"role": "user", "content": "a"}]})
    assert shaper.learn(ModelRefusal(status=400, problems=(problem,)), sent) is None


@pytest.mark.parametrize(
    ("problem", "known", "numbers", "learned"),
    [
        (Problem.CONTEXT, {}, {"limit": 3_000, "size": 3_000}, {"context": None}),
        (Problem.CONTEXT, {"context": 3_000}, {"limit": 3_000}, {"prompt_limit": 817}),
        (Problem.CONTEXT, {"prompt_limit": 286}, {}, {"prompt_limit": 200}),
        (Problem.OUTPUT_LIMIT, {}, {"limit": 900}, {"output_limit": 450}),
        (Problem.TOOL_COUNT, {}, {"limit": 2}, {"tool_limit": 1}),
    ],
)
def test_numbers_that_do_not_help(
    problem: Problem, known: dict[str, Any], numbers: dict[str, Any], learned: dict[str, object]
) -> None:
    profile = ModelProfile(**known)
    shaper = RequestShaper(profile)
    sent, _ = shaper.shape(REQUEST)
    assert shaper.learn(ModelRefusal(status=400, problems=(problem,), **numbers), sent) is problem
    assert {name: getattr(profile, name) for name in learned} == learned


def test_smallest_limits_teach_nothing_more() -> None:
    assert learn(ModelProfile(output_limit=1), 400, "max_tokens is too large") is Problem.MAX_TOKENS
    assert learn(ModelProfile(tool_limit=1), 400, "too many tools") is Problem.TOOLS


def test_lessons_of_a_failed_call_are_dropped() -> None:
    known = ModelProfile()
    shaper = RequestShaper(known)
    sent, _ = shaper.shape(REQUEST)
    assert shaper.learn(parse_refusal(400, "no tools", sent), sent) is Problem.TOOLS
    assert shaper.learn(ModelRefusal(status=400, problems=(Problem.ROLE_ORDER,)), sent) is Problem.ROLE_ORDER
    shaper.forget()
    assert known == ModelProfile()
    assert shaper.learn(parse_refusal(400, "no tools", sent), sent) is Problem.TOOLS
    shaper.confirm(0)
    shaper.forget()
    assert known == ModelProfile(tools=False)


def test_overflow_without_numbers_steps_back() -> None:
    known = ModelProfile()
    shaper = RequestShaper(known, turn_start=10)
    request = {"messages": [*[{"role": "user", "content": "x" * 1_000}] * 10, {"role": "user", "content": "now"}]}
    sizes = []
    refused = ModelRefusal(status=400, problems=(Problem.CONTEXT,))
    while True:
        sent, _ = shaper.shape(request)
        sizes.append(len(sent["messages"]))  # type: ignore[arg-type]  # a list
        if shaper.learn(refused, sent) is None:
            break
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 11
    assert sizes[-1] == 1


def test_overflow_makes_tools_few_and_then_drops_them() -> None:
    reduced: list[int | None] = []

    def reduce(limit: int | None) -> bool:
        reduced.append(limit)
        return len(reduced) == 1

    request = {"messages": [{"role": "user", "content": "now"}], "tools": TOOLS}
    shaper = RequestShaper(ModelProfile(), reduce_tools=reduce)
    refused = ModelRefusal(status=400, problems=(Problem.CONTEXT,), limit=2_000, size=2_100)
    sent, _ = shaper.shape(request)
    assert shaper.learn(refused, sent) is Problem.CONTEXT
    sent, _ = shaper.shape(request)
    assert "tools" in sent
    assert shaper.learn(refused, sent) is Problem.CONTEXT
    sent, _ = shaper.shape(request)
    assert "tools" not in sent
    assert reduced == [None, None]


@pytest.mark.parametrize(("share", "reductions"), [(2, []), (1, [None])])
def test_tools_that_fill_half_or_all_of_the_room_are_sent(share: int, reductions: list[None]) -> None:
    reduced: list[int | None] = []

    def reduce(limit: int | None) -> bool:
        reduced.append(limit)
        return False

    shaper = RequestShaper(ModelProfile(prompt_limit=share * estimate_tokens(TOOLS)), reduce_tools=reduce)
    sent, _ = shaper.shape({"messages": [{"role": "user", "content": "now"}], "tools": TOOLS})
    shaper.learn(ModelRefusal(status=400, problems=(Problem.CONTEXT,), limit=9_000), sent)
    assert reduced == reductions
    assert "tools" in shaper.shape(sent)[0]


def test_counts_of_the_server_adjust_the_estimate() -> None:
    known = ModelProfile(context=8_192)
    shaper = RequestShaper(known)
    shaper.shape({"messages": [{"role": "user", "content": "x" * 666}]})
    assert shaper.estimate == SMALLEST_PROMPT
    shaper.confirm(600)
    assert known.density == 1.0
    shaper.shape({"messages": [{"role": "user", "content": "x" * 3_500}]})
    shaper.confirm(2_010)
    assert known.density == pytest.approx(2.0, abs=0.02)
    shaper.confirm(100)
    assert known.density == pytest.approx(2.0, abs=0.02)


# --- in a turn --------------------------------------------------------------------------------------------------------

LONG = tuple({"role": role, "content": f"{place} " * 700} for place in range(12) for role in ("user", "assistant"))


def test_profile_outlives_the_turn() -> None:
    world = AgentHarness(model=[refusal(404, "No endpoints found that support tool use."), plain("One"), plain("Two")])

    def plan(parts: Any, engine: Any) -> Any:
        for _ in range(2):
            assert (yield from world.turn(parts, "Hi")) == TurnOutcome()

    world.run(plan)
    assert ["tools" in asked for asked in world.model.seen] == [True, False, False]
    assert [event.text for event in world.host.events if isinstance(event, TurnNotice)] == [f"{NO_TOOLS}\n"]


def test_smaller_context_than_the_configured_one_outlives_the_turn() -> None:
    route = ModelEndpoint(base_url=ROUTE.base_url, model="small", api_key=ROUTE.api_key, context=8_192)
    said = "maximum context length is 4096 tokens, you requested 9000 tokens"
    world = AgentHarness(model=[refusal(400, said), plain("One"), plain("Two")])

    def plan(parts: Any, engine: Any) -> Any:
        for _ in range(2):
            assert (yield from world.turn(parts, "Hi", model=route)) == TurnOutcome()

    world.run(plan)
    assert [asked["max_tokens"] for asked in world.model.seen] == [2_048, 1_024, 1_024]


def test_failed_call_teaches_the_next_turn_nothing() -> None:
    world = AgentHarness(model=[refusal(400, "no tools"), refusal(401), plain("Two")])

    def plan(parts: Any, engine: Any) -> Any:
        assert (yield from world.turn(parts, "Hi")).finish == "error"
        assert (yield from world.turn(parts, "Hi")) == TurnOutcome()

    world.run(plan)
    assert ["tools" in asked for asked in world.model.seen] == [True, False, True]


def test_lessons_of_one_call_are_limited() -> None:
    world = AgentHarness(model=[refusal(400, "the context is exceeded by tokens")] * 30)
    assert world.answer("x" * 400_000).finish == "error"
    assert len(world.model.seen) == 1 + MAX_LESSONS


def test_configured_context_is_respected_at_once() -> None:
    world = AgentHarness(model=[plain("Noted.")])
    route = ModelEndpoint(base_url=ROUTE.base_url, model="small", api_key=ROUTE.api_key, context=4_096)
    assert world.answer("Well?", history=LONG, model=route) == TurnOutcome()
    (asked,) = world.model.seen
    assert asked["max_tokens"] <= 1_024
    assert len(str(asked["messages"]) + str(asked.get("tools", ""))) < 4 * 4_096  # four characters are a token


def test_context_that_nothing_fits_is_an_error_in_words() -> None:
    world = AgentHarness(model=[refusal(400, "the context is exceeded by tokens")] * 30)
    outcome = world.answer("Hi")
    assert outcome.error is not None
    assert outcome.error.startswith("the conversation is longer than the model's context: 400, the context is")


def test_client_option_that_the_server_refuses() -> None:
    world = AgentHarness(model=[refusal(400, "Unknown parameter: 'top_k'.")])
    outcome = world.answer("Hi", options={"top_k": 5})
    assert outcome.code == "unsupported_option"


def test_one_call_where_the_client_wants_no_parallel_ones() -> None:
    two = calls(("add", {"a": 1}), ("add", {"a": 2}))
    world = AgentHarness(model=[refusal(400, "Unrecognized argument: parallel_tool_calls"), two])
    outcome = world.answer("Hi", tools=(TOOL,), options={"parallel_tool_calls": False})
    assert [call.arguments for call in outcome.calls] == ['{"a": 1}']
    assert ["parallel_tool_calls" in asked for asked in world.model.seen] == [True, False]
