import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent import approval_memory
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.approval_memory import FILE, ApprovalMemory, build_approval_request, pattern_of
from svc_proto.agent.interface import ApprovalRequested, ToolCall
from svc_proto.agent.toolbox import DENIED
from svc_proto.agent.tools.tool import Tool, schema
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import gather
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from tests.agent.harness import HOME, AgentHarness
from tests.support.playbook import make_flow

PATH = f"{HOME}/{FILE}"


COST = "Costs money."
CALL = Tool(name="phone_call", description="", parameters=schema(), run=lambda _: make_flow(""), needs_approval=COST)
INTENT = evolve(CALL, name="phone_send_intent", needs_approval=None)
A_CALL = ToolCall(id="c", name="phone_call", args={"whatever": "the model wrote"})


def about(**given: Any) -> ApprovalRequested:
    return build_approval_request(CALL, A_CALL, given, COST)


@pytest.mark.parametrize(
    ("choices", "asked", "ends"),
    [
        (["once", "once"], 2, ["finished", "finished"]),
        (["deny", "once"], 2, ["failed", "finished"]),
        (["session"], 1, ["finished", "finished"]),
        (["always"], 1, ["finished", "finished"]),
        (["whatever"], 2, ["failed", "failed"]),
    ],
)
def test_effect_of_a_choice_in_one_chat(world: AgentHarness, choices: list[str], asked: int, ends: list[str]) -> None:
    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        for _ in range(2):
            yield from world.turn(parts, "/approve", model=None)

    world.host.choices = choices
    world.run(plan)
    assert len(world.host.asked) == asked
    assert [word.split()[0] for word in world.host.event_names if word.endswith(" demo_ask") and word[0] == "f"] == ends
    if "failed" in ends:
        shown = {(each.error, each.preview) for each in world.host.finished if each.error is not None}
        assert shown == {(DENIED[0], DENIED[0])}  # without the advice for the model


def test_always_outlives_the_process_session_does_not(world: AgentHarness) -> None:
    world.host.choices = ["session", "always"]
    for _ in range(3):
        world.command("/approve")
    assert len(world.host.asked) == 2
    assert json.loads(world.disk.get(PATH)) == {"always": ["demo_ask"]}


def test_approval_is_requested_again_in_another_chat() -> None:
    def plan(parts: AgentParts, engine: Engine) -> Flow[tuple[bool, bool, bool]]:
        known = ApprovalMemory(engine)
        world.host.engine = engine
        yield from known.request("s1", about(number="5"), world.host)
        return (
            (yield from known.remembers("s1", "phone_call 5")),
            (yield from known.remembers("s1", "phone_call 6")),
            (yield from known.remembers("s2", "phone_call 5")),
        )

    world = AgentHarness()
    world.host.choices = ["session"]
    assert world.run(plan) == (True, False, False)
    command = 'phone_call {"number":"5"}'
    request = ApprovalRequested(call=A_CALL, command=command, description=COST, pattern="phone_call 5")
    assert world.host.asked == [request]


def test_patterns() -> None:
    assert pattern_of(CALL, {"number": "+1 555"}) == "phone_call +1 555"
    assert pattern_of(CALL, {}) == "phone_call"
    assert pattern_of(INTENT, {"data": "b", "action": "a"}) == 'phone_send_intent {"action":"a","data":"b"}'
    long, longer = (pattern_of(CALL, {"number": "5" * size}) for size in (189, 190))
    assert (len(long), len(longer), approval_memory.MAX_PATTERN) == (200, 200, 200)
    assert long == "phone_call " + "5" * 189
    assert longer.startswith("phone_call 5")
    assert longer not in (long, pattern_of(CALL, {"number": "5" * 191}))


@pytest.mark.parametrize(
    "other",
    [
        {"data": "tel:+1900"},
        {"data": "x" * 500 + "y"},
        {"package": "com.example"},
        {"component": "com.example/.Main"},
        {"category": "android.intent.category.DEFAULT"},
        {"action": "DELETE"},
        {"extras": {"android.intent.extra.EMAIL": "elsewhere@example.com"}},
        {"device": "the other"},
    ],
)
def test_an_approval_covers_all_arguments(other: dict[str, object]) -> None:
    allowed = {"action": "VIEW", "data": "x" * 500}
    assert pattern_of(INTENT, allowed) == pattern_of(INTENT, dict(reversed(allowed.items())))
    assert pattern_of(INTENT, allowed) != pattern_of(INTENT, {**allowed, **other})


def test_whole_call_is_shown_to_the_user() -> None:
    asked = about(number="+1 555", body="Grüße\n\u202e", extras={"passwords": "x"})
    assert asked.command == r'phone_call {"number":"+1 555","body":"Grüße\n\u202e","extras":{"passwords":"x"}}'
    room = approval_memory.MAX_SHOWN - len('phone_call {"number":""}')
    assert len(about(number="5" * room).command) == approval_memory.MAX_SHOWN
    with pytest.raises(ToolError, match="too long to be shown"):
        about(number="5" * (room + 1))
    effect = Effect(kind=EffectKind.INTENT, place="com.ex\u0430mple.mail", recipient="collector.invalid")
    asked = build_approval_request(INTENT, A_CALL, {"package": "com.ex\u0430mple.mail"}, "Why.", effect)
    assert asked.command == 'phone_send_intent {"package":"com.ex\\u0430mple.mail"}'
    where = "To: collector.invalid. App: com.ex\\u0430mple.mail"
    assert asked.description == f"Why. {where}. Some of the letters only look like others."


@pytest.mark.parametrize("given", [{"Password": "x"}, {"number": "1", "attachments": [{"token": "x"}]}])
def test_call_with_hidden_arguments_is_refused(given: dict[str, object]) -> None:
    """Refuse calls with secrets or with deeply nested arguments, since the question would not show these."""
    with pytest.raises(ToolError, match="password, token, secret, otp, bearer would not be shown"):
        about(**given)
    deep: object = "x"
    for _ in range(40):
        deep = [deep]
    with pytest.raises(ToolError, match="nested below 32 levels would not be shown"):
        about(number="1", extras=deep)


def test_remembered_approvals_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_ALWAYS", "MAX_SESSIONS", "MAX_PER_SESSION"):
        monkeypatch.setattr(approval_memory, name, 2)
    world = AgentHarness()
    world.host.choices = ["session"] * 6 + ["always"] * 3

    def plan(parts: AgentParts, engine: Engine) -> Flow[list[bool]]:
        known = ApprovalMemory(engine)
        world.host.engine = engine
        for session, number in (("a", 1), ("b", 1), ("a", 2), ("c", 1), ("c", 2), ("c", 3)):
            yield from known.request(session, about(number=number), world.host)
        found = []
        for session, number in (("a", 1), ("b", 1), ("c", 1), ("c", 2), ("c", 3)):
            found.append((yield from known.remembers(session, f"phone_call {number}")))
        yield from gather(engine, [known.request("d", about(number=number), world.host) for number in (7, 8, 9)])
        yield from known._write("phone_call 9")  # stored already
        return found

    assert world.run(plan) == [True, False, False, True, True]
    assert json.loads(world.disk.get(PATH)) == {"always": ["phone_call 8", "phone_call 9"]}


@pytest.mark.parametrize("text", [b"\xff", b"{", b"[]", b'{"always": 5}'])
def test_unreadable_file_allows_nothing(world: AgentHarness, text: bytes) -> None:
    world.disk.put(PATH, text)
    world.command("/approve")
    assert len(world.host.asked) == 1
    assert "approvals not read" in [name for name, _ in world.logs]


@pytest.mark.parametrize("fault", ["disk", "text"])
def test_unreadable_file_is_not_overwritten(world: AgentHarness, fault: str) -> None:
    there = b'{"always": ["phone_call 1"]}' if fault == "disk" else b'{"always": ["phone_call 1",]}'
    world.disk.put(PATH, there)
    if fault == "disk":
        world.disk.denied.add(PATH)
    world.host.choices = ["always"]
    world.command("/approve")
    world.disk.denied.clear()
    assert world.disk.get(PATH) == there
    assert "approval not stored" in [name for name, _ in world.logs]


def test_end_of_approvals(world: AgentHarness) -> None:
    world.host.choices = ["session", "session", "always", "always", "session"]

    def plan(parts: AgentParts, engine: Engine) -> Flow[list[object]]:
        known = ApprovalMemory(engine)
        world.host.engine = engine
        for session, number in (("a", 1), ("b", 1), ("a", 2), ("b", 3), ("b", 4)):
            yield from known.request(session, about(number=number), world.host)
        found: list[object] = [(yield from known.end("a", "phone_call 1")), (yield from known.standing())]
        yield from gather(engine, [known.end("", f"phone_call {number}") for number in (1, 2, 3)])
        found.append((yield from known.standing()))
        world.disk.denied.add(PATH)
        found.append((yield from known.end("b", "phone_call 4")))
        return [*found, (yield from known.end("b", "phone_call 4"))]

    of_one_chat = [("", "phone_call 2"), ("", "phone_call 3"), ("b", "phone_call 1"), ("b", "phone_call 4")]
    unread = "the approvals cannot be read"
    assert world.run(plan) == ["", of_one_chat, [("b", "phone_call 4")], unread, unread]


def test_choice_that_cannot_be_stored_holds_for_the_chat(world: AgentHarness) -> None:
    world.disk.capacity = 0
    world.host.choices = ["always"]

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        for session in ("s", "s", "t"):
            yield from world.turn(parts, "/approve", model=None, session_id=session)

    world.run(plan)
    assert len(world.host.asked) == 2  # the second one in the other chat


def test_choices_that_cannot_be_stored_or_read_ask_again(world: AgentHarness) -> None:
    world.disk.put(PATH, b'{"always": [5, "demo_ask"]}')
    world.command("/approve")
    assert world.host.asked == []
    world = AgentHarness()
    world.disk.capacity = 0
    world.host.choices = ["always"]
    world.command("/approve")
    assert world.host.event_names[-4] == "finished demo_ask"
    assert ("approval not stored", {"problem": "no_space"}) in world.logs
