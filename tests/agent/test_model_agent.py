import json
from typing import Any

import pytest

from svc_proto.agent import model_agent
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.completion_assembler import MAX_TEXT
from svc_proto.agent.interface import ModelEndpoint, TextDelta, TurnOutcome
from svc_proto.agent.model_agent import parse_arguments
from svc_proto.agent.system_prompt import NO_PHONE, PHONE, TOOLS
from svc_proto.basics.strict_json import JsonError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.schema.model_profile import PROFILES_FILE, ModelProfile, encode_profiles
from tests.agent.harness import HOME, KEY, ROUTE, AgentHarness
from tests.support.servers.model_server import DONE, ModelAnswer, calls, chunk, huge, plain, refusal, whole


def test_a_plain_answer() -> None:
    world = AgentHarness(model=[plain("Hello there, friend")])
    assert world.answer("Hi", system="Be kind.", max_tokens=50) == TurnOutcome()
    assert world.host.event_names == ["asked", "text", "answered"]
    texts = [event.text for event in world.host.events if isinstance(event, TextDelta)]
    assert texts == ["Hello ", "there, ", "friend"]
    assert world.host.usage == [(7, 3)]
    (asked,) = world.model.seen
    assert asked["model"] == "small"
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True}
    assert asked["max_tokens"] == 50
    assert asked["messages"][0]["role"] == "system"
    assert asked["messages"][0]["content"].startswith(f"Be kind.\n\n{NO_PHONE}\n\n{TOOLS}")
    assert asked["messages"][1:] == [{"role": "user", "content": "Hi"}]
    names = [tool["function"]["name"] for tool in asked["tools"]]
    assert names == ["memory", "skills_list", "skill_view", "ask_user"]
    assert world.model.keys == [b"Bearer " + KEY.encode()]


def test_phone_tools_are_offered_with_a_phone() -> None:
    world = AgentHarness(model=[plain("Ok")], phone=True)
    world.answer("Hi")
    asked = world.model.seen[0]
    assert asked["messages"][0]["content"].startswith(PHONE)
    names = [tool["function"]["name"] for tool in asked["tools"]]
    assert {"phone_screen", "phone_send_sms", "more_tools", "memory", "skills_list", "skill_view"} <= set(names)
    assert not [name for name in names if name.startswith("demo_")]


def test_history_is_passed_on_without_marks() -> None:
    history = ({"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"})
    parts = ({"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:,x"}})
    world = AgentHarness(model=[plain("A cat")])
    world.answer(parts, history=history, model=ModelEndpoint(base_url="http://model:9000/v1/", model="m"))
    assert world.model.seen[0]["messages"][1:] == [*history, {"role": "user", "content": list(parts)}]
    assert world.model.keys == [None]
    world = AgentHarness(model=[plain("Ok")])
    world.answer("Hi", history=({"role": "assistant", "content": "<|im_start|>system"},))
    assert "<|im_start|>" not in str(world.model.seen[-1])


def test_invalid_arguments_in_the_history_are_replaced() -> None:
    def row(*arguments: str) -> dict[str, object]:
        calls = [{"id": f"call_{n}", "function": {"name": "x", "arguments": each}} for n, each in enumerate(arguments)]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    odd = {"role": "assistant", "tool_calls": [{"id": "call_9"}]}
    world = AgentHarness(model=[calls(("skills_list", {})), plain("Ok")])
    world.answer("Hi", history=(row('{"a": 1}', "{", "[]"), odd))
    assert world.model.seen[0]["messages"][1:3] == [row('{"a": 1}', "{}", "{}"), odd]
    (finished,) = world.host.finished
    assert finished.call.id != "call_0"  # the conversation has this id already


def test_memory_and_skills_are_in_the_prompt() -> None:
    world = AgentHarness(model=[plain("Ok")])
    world.disk.put(f"{HOME}/memories/USER.md", "Likes tea\n§\nLives in Bern\n".encode())
    world.disk.put(f"{HOME}/skills/brew/SKILL.md", b"---\ndescription: Make tea\n---\n# Brew\n")
    world.answer("Hi")
    system = world.model.seen[0]["messages"][0]["content"]
    notes = "What you know about the user (tool memory, target user):\n- Likes tea\n- Lives in Bern"
    skills = "Skills (read one with skill_view before you do what it is about):\n- brew: Make tea"
    assert f"{TOOLS}\n\n{notes}\n\n{skills}\n\nToday is " in system
    assert "Your notes" not in system
    world = AgentHarness(model=[plain("Ok")])
    world.disk.put(f"{HOME}/memories/USER.md", b"\xff\xfe")
    assert world.answer("Hi") == TurnOutcome()


def test_a_tool_and_the_answer_after_it() -> None:
    note = {"action": "add", "content": "Tea"}
    world = AgentHarness(model=[calls(("memory", note), text="I note it."), plain("Noted, friend.")])
    assert world.answer("I like tea") == TurnOutcome()
    assert world.host.event_names == [
        "asked", "text", "answered",
        "started memory", "noted memory", "finished memory", "asked", "text", "answered",
    ]  # fmt: skip
    assert world.host.text == "I note it.\n\nNoted, friend."
    (row, result) = world.host.rows
    assert row == ("I note it.", "", [("call_0", "memory", note)])
    (finished,) = world.host.finished
    assert result == ("call_0", finished.output)
    assert (finished.error, finished.call.preview) == (None, '{"action":"add","content":"Tea"}')
    assert finished.seconds > 0
    assert str(finished.preview).startswith('{"success":true')
    function = {"name": "memory", "arguments": '{"action": "add", "content": "Tea"}'}
    call = {"id": "call_0", "type": "function", "function": function}
    assert world.model.seen[1]["messages"][2:] == [
        {"role": "assistant", "content": "I note it.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": finished.output},
    ]
    assert b"Tea" in world.disk.get(f"{HOME}/memories/MEMORY.md")


ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def test_calls_of_a_client_s_tools_are_the_client_s() -> None:
    world = AgentHarness(model=[calls(("add", {"a": 2}), text="Let me add."), plain("Four.")])
    turn: dict[str, Any] = {"tools": (ADD,), "options": {"temperature": 0.2}, "system": "Add."}
    outcome = world.answer("2 + 2?", **turn)
    (call,) = outcome.calls
    assert (outcome.finish, call.id, call.name, call.arguments) == ("tool_calls", "call_0", "add", '{"a": 2}')
    assert world.host.rows == [("Let me add.", "", [("call_0", "add", {"a": 2})])]
    asked = world.model.seen[0]
    assert (asked["tools"], asked["temperature"]) == ([ADD], 0.2)
    assert asked["messages"] == [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 2?"}]
    history = ({"role": "user", "content": "2 + 2?"}, {"role": "tool", "tool_call_id": "call_0", "content": "4"})
    assert world.answer("", tools=(), history=history, max_tokens=9) == TurnOutcome()
    asked = world.model.seen[1]
    assert (asked["messages"], asked["max_tokens"], "tools" in asked) == (list(history), 9, False)
    world = AgentHarness(model=[refusal(400, "this model does not support tools")])
    outcome = world.answer("2 + 2?", tools=(ADD,))
    assert (outcome.finish, outcome.code) == ("error", "upstream_error")
    assert outcome.error is not None
    assert "does not support tools" in outcome.error


def test_text_around_tags_and_calls() -> None:
    world = AgentHarness(model=[calls(("skills_list", {})), plain("Nothing.")])
    world.answer("Skills?")
    assert world.host.text == "Nothing."
    world = AgentHarness(model=[calls(("skills_list", {}), text="Let me see."), plain("")])
    assert world.answer("Hi") == TurnOutcome()
    world = AgentHarness(model=[ModelAnswer(events=(chunk({"content": "1 <th"}), DONE))])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.text == "1 <th"
    events = [chunk({"content": text}) for text in ("I greet.", "</think>\n\nHel", "lo.")]
    world = AgentHarness(model=[ModelAnswer(events=(*events, chunk(finish="stop"), DONE))])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.event_names == ["asked", "text", "retracted", "reasoning", "text", "answered"]
    assert (world.host.text, world.host.reasoning) == ("Hello.", "I greet.")
    events = [chunk({"content": text}, "stop") for text in ("Hello ", "there")]  # which ends nothing
    world = AgentHarness(model=[ModelAnswer(events=(*events, chunk({}, "stop"), DONE), pause=20.0)])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.text == "Hello there"


def test_parallel_tools_run_at_once_and_answer_in_order() -> None:
    wanted = calls(("demo_wait", {"seconds": 5}), ("demo_wait", {"seconds": "2"}), ("demo_fail", {}))
    world = AgentHarness(model=[wanted, plain("Ok")])
    world.answer("Go")
    assert world.host.event_names[2:-3] == [
        "started demo_wait", "started demo_wait", "started demo_fail",
        "failed demo_fail", "finished demo_wait", "finished demo_wait",
    ]  # fmt: skip
    assert [finished.seconds > 4 for finished in world.host.finished] == [False, False, True]
    results = [row["content"] for row in world.model.seen[1]["messages"][3:]]
    assert results == ["waited 5 s", "waited 2 s", "error: this tool always fails, to show how that looks"]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("memory", '{"action": ', "the arguments are not a JSON object: Expecting value"),
        ("memory", "[1]", "the arguments are not a JSON object: it is of another type"),
        ("memory", "{}", "the argument action is missing"),
        ("format_disk", "{}", "there is no tool 'format_disk'"),
        ("", "{", "there is no tool ''"),
    ],
)
def test_invalid_calls(name: str, arguments: str, error: str) -> None:
    world = AgentHarness(model=[calls((name, arguments)), plain("Sorry")])
    assert world.answer("Go") == TurnOutcome()
    assert world.host.event_names[2:4] == [f"started {name}", f"failed {name}"]
    (finished,) = world.host.finished
    assert finished.error is not None
    assert finished.error.startswith(error)
    messages = world.model.seen[1]["messages"]
    assert messages[-1]["content"].startswith("error: " + error)
    json.loads(messages[-2]["tool_calls"][0]["function"]["arguments"])  # valid JSON in any case


def test_calls_without_ids_or_with_the_same_get_some() -> None:
    call = {"type": "function", "function": {"name": "skills_list", "arguments": "{}"}}
    world = AgentHarness(model=[whole({"tool_calls": [call, call, {**call, "id": "a"}]}), plain("Ok")])
    world.answer("Go")
    ids = [call["id"] for call in world.model.seen[1]["messages"][2]["tool_calls"]]
    assert len(set(ids)) == 3
    assert ids[2] == "a"
    assert all(len(identity) == 9 and identity.isalnum() for identity in ids[:2])
    events = [chunk({"tool_calls": [{**call, "index": index, "id": "same"}]}) for index in (0, 1)]
    same = AgentHarness(model=[ModelAnswer(events=(*events, DONE)), plain("Ok")])
    same.answer("Go")
    assert len({finished.call.id for finished in same.host.finished}) == 2


def test_answer_without_streaming() -> None:
    world = AgentHarness(model=[whole({"content": "All at once", "reasoning": "quick"})])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.event_names == ["asked", "reasoning", "text", "answered"]
    assert world.host.usage == [(3, 4)]
    world = AgentHarness(model=[whole({"content": "All at once"})])
    world.host.behind = True
    assert world.answer("Hi") == TurnOutcome()
    assert not world.host.behind


def test_the_most_calls_of_a_model() -> None:
    world = AgentHarness(model=[calls(("skills_list", {})) for _ in range(5)])
    assert world.answer("Loop", max_calls=3) == TurnOutcome(finish="length")
    assert len(world.model.seen) == 3
    assert len(world.host.finished) == 3


@pytest.mark.parametrize(("most", "rounds"), [(47, 2), (48, 3), (71, 3)])  # 24 characters each
def test_context_sent_to_the_model_is_limited(most: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_agent, "MAX_CONTEXT_BYTES", most)
    world = AgentHarness(model=[calls(("demo_wait", {"seconds": 1})) for _ in range(9)])
    assert world.answer("Loop") == TurnOutcome(finish="length")
    assert len(world.model.seen) == rounds


@pytest.mark.parametrize(
    ("finish", "text", "outcome"),
    [
        ("length", "cut", {"finish": "length"}),
        ("content_filter", "cut", {"finish": "length"}),
        ("content_filter", "", {"error": "the model's server withheld the answer", "code": "content_filter"}),
        ("error", "cut", {"error": "the model's server failed while it answered", "code": "upstream_error"}),
        ("tool_calls", "no calls", {"finish": "stop"}),
        ("eos", "another word", {"finish": "stop"}),
    ],
)
def test_how_an_answer_may_end(finish: str, text: str, outcome: dict[str, Any]) -> None:
    expected = TurnOutcome(**{"finish": "error", **outcome})
    assert AgentHarness(model=[plain(text, finish=finish)]).answer("Hi") == expected


def test_too_long_text_is_cut() -> None:
    world = AgentHarness(model=[huge(40, 50_000)])
    assert world.answer("Write") == TurnOutcome(finish="length")
    assert len(world.host.text) == MAX_TEXT
    world.sim.run_for(1.0)
    assert world.model.channels[0].gone  # the agent does not wait for the rest


def test_slow_reader_pauses_the_model() -> None:
    world = AgentHarness(model=[huge(100, 10_000)])
    world.host.always_behind = True
    assert world.answer("Write") == TurnOutcome()
    assert 3 <= world.host.drains <= 40
    assert len(world.host.text) == 1_000_000
    world = AgentHarness(model=[huge(100, 10_000)])
    world.host.always_behind = True

    def plan(parts: AgentParts, engine: Engine) -> Flow[int]:
        task = engine.spawn(world.turn(parts, "Write"))
        yield from sleep(engine, 0.9)  # one batch was emitted and is being read
        task.cancel()
        return world.model.written

    assert world.run(plan) < 100


@pytest.mark.parametrize("when", [0.001, 0.5, 1.2, 3.0, 4.2])
def test_being_stopped_at_any_wait(when: float) -> None:
    wanted, waiting = calls(("skills_list", {}), ("demo_ask", {})), calls(("demo_wait", {"seconds": 9}), text="Wait")
    world = AgentHarness(model=[wanted.slow(0.1), plain("one two three").slow(0.4), waiting, plain("x")])
    told: list[int] = []

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        task = engine.spawn(world.turn(parts, "Go"))
        yield from sleep(engine, when)
        task.cancel()
        told.append(len(world.host.events))
        yield from sleep(engine, 60.0)

    world.run(plan)
    assert len(world.host.events) == told[0]
    assert all(channel.gone for channel in world.model.channels)
    assert not [event for event, _ in world.logs if event == "bug"]


# --- what a server put on its answer goes back with it ----------------------------------------------------------------


def called(**members: object) -> dict[str, object]:
    call = {"index": 0, "id": "a", "function": {"name": "skills_list", "arguments": "{}"}, **members}
    return {"tool_calls": [call]}


@pytest.mark.parametrize(
    ("events", "row"),
    [
        ([{"reasoning_content": "hm"}, called()], {"reasoning_content": "hm"}),
        ([{"reasoning_details": [{"text": "hm"}]}, called()], {"reasoning_details": [{"text": "hm"}]}),
        ([{"content": "<think>hm</think>"}, called()], {}),
    ],
)
def test_members_of_an_answer_go_back(events: list[dict[str, object]], row: dict[str, object]) -> None:
    answer = ModelAnswer(events=(*map(chunk, events), chunk(finish="tool_calls"), DONE))
    world = AgentHarness(model=[answer, plain("None.")])
    world.answer("Skills?")
    back = world.model.seen[1]["messages"][2]
    assert {name: value for name, value in back.items() if name not in ("role", "content", "tool_calls")} == row
    assert world.host.extras == [row]


def test_members_of_a_call_go_back() -> None:
    signature = {"google": {"thought_signature": "s"}}
    answer = ModelAnswer(events=(chunk(called(extra_content=signature)), chunk(finish="tool_calls"), DONE))
    world = AgentHarness(model=[answer, plain("None.")])
    world.answer("Skills?")
    assert world.model.seen[1]["messages"][2]["tool_calls"][0]["extra_content"] == signature
    (event,) = [event for event in world.host.finished if event.call.extra]
    assert event.call.extra == {"extra_content": signature}


@pytest.mark.parametrize(
    ("events", "finish", "error"),
    [
        ([{"content": ""}], "stop", "the model gave an empty answer"),
        ([{"content": " \n"}], "stop", "the model gave an empty answer"),
        ([{"reasoning_content": "hm"}], "stop", "the model thought, and gave no answer"),
        ([{"reasoning_content": "hm"}], "length", "the model's answer was cut at its limit of tokens before it began"),
        ([{"content": "<think>hm"}], "stop", "the model thought, and gave no answer"),
    ],
)
def test_empty_answer_is_an_error(events: list[dict[str, object]], finish: str, error: str) -> None:
    world = AgentHarness(model=[ModelAnswer(events=(*map(chunk, events), chunk(finish=finish), DONE))])
    assert world.answer("Hi") == TurnOutcome(finish="error", error=error, code="empty_answer")


def test_context_is_asked_for_once() -> None:
    pages = {"/v1/models": {"data": [{"id": "small", "meta": {"n_ctx": 4096}}]}}
    world = AgentHarness(model=[plain("Ok"), plain("Ok")], pages=pages, phone=True)
    world.answer("Hi")
    asked = world.model.seen[0]
    assert "more_tools" in [tool["function"]["name"] for tool in asked["tools"]]
    assert len(asked["tools"]) < 15
    assert asked["max_tokens"] == 1024
    world = AgentHarness(model=[plain("Ok"), plain("Ok")], phone=True)

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        for _ in range(2):
            yield from world.turn(parts, "Hi")

    world.run(plan)
    assert len(world.model.channels) == 3  # two chats, and the list of models
    assert "max_tokens" not in world.model.seen[1]


def test_lesson_of_the_only_call_is_written() -> None:
    world = AgentHarness(model=[refusal(400, "this model does not support tools"), plain("Ok")])

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        yield from world.turn(parts, "Hi")
        yield from sleep(engine, 1.0)

    world.run(plan)
    assert b'"tools":false' in world.disk.get(f"{HOME}/{PROFILES_FILE}")


def test_learned_context_outlives_a_failed_probe() -> None:
    world = AgentHarness(model=[plain("Ok")])
    profiles = {(ROUTE.base_url, ROUTE.model, ROUTE.context): ModelProfile(context=4096, learned_at=float(2**40))}
    world.disk.put(f"{HOME}/{PROFILES_FILE}", encode_profiles(profiles).encode())
    world.answer("Hi")
    assert world.model.seen[0]["max_tokens"] == 1024


@pytest.mark.parametrize(
    ("written", "args", "arguments"),
    [
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        *((written, {}, "{}") for written in ("", " null ", "None", '""', "[]")),
        ('"{\\"a\\": 1}"', {"a": 1}, '{"a": 1}'),
        ('" "', {}, "{}"),
        ('```json\n{"a": 1}\n```', {"a": 1}, '{"a": 1}'),
        ('{"a": NaN, "b": 1, "b": 2}', {"a": None, "b": 2}, '{"a":null,"b":2}'),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}, '{"a":"\ufffd"}'),
    ],
)
def test_arguments(written: str, args: dict[str, object], arguments: str) -> None:
    assert parse_arguments(written) == (args, arguments)


@pytest.mark.parametrize("written", ['{"a": ', "[1]", "5", '"x"', "{,}"])
def test_invalid_arguments(written: str) -> None:
    with pytest.raises(JsonError):
        parse_arguments(written)
