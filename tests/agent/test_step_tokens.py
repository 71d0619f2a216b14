"""Tokens of the prompts for work on a phone: the tools, a first turn, and ten steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent.tool_selection import ToolPolicy
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from tests.agent.harness import ROUTE, AgentHarness
from tests.agent.tools.phone_world import StockPhone, screen_body
from tests.support.model_tokens import count_tokens
from tests.support.servers.model_server import calls, plain

PLACES = ("harbour", "station", "library", "market", "garden", "bridge", "museum", "theatre", "bakery", "school")
ROW = {"clickable": True, "longClickable": True, "viewId": "com.chat:id/row"}
ICON = {"clickable": True, "contentDescription": "More options"}
TAB = {"clickable": True, "className": "android.widget.TextView"}


def chat_screen(place: int) -> dict[str, Any]:
    """Return a list of chats: a tool bar, entries of three texts with a button each, and tabs."""
    nodes: list[dict[str, Any]] = [
        {"text": f"Chats at the {PLACES[place % 10]}", "viewId": "com.chat:id/title", "at": (0, 0, 1000, 90)},
        {"clickable": True, "contentDescription": "Search", "className": "android.widget.Button"},
        {"scrollable": True, "viewId": "com.chat:id/list", "at": (0, 200, 1000, 1900)},
    ]
    for row in range(5 + place % 4):
        top = 200 + row * 150
        nodes.append({**ROW, "at": (0, top, 1000, top + 150)})
        where = PLACES[(place + row) % 10]
        for part, words in enumerate((f"Person {place * 10 + row}", f"Shall we meet at the {where} at noon?", "8:40")):
            line = (0, top + 50 * part, 900, top + 50 * part + 50)
            nodes.append({"text": words, "viewId": f"com.chat:id/line{part}", "at": line})
        nodes.append({**ICON, "at": (900, top, 1000, top + 150)})
    nodes += [{**TAB, "text": tab, "selected": tab == "Chats"} for tab in ("Chats", "Calls", "People", "Settings")]
    return screen_body(*nodes, packageName="com.chat")


class WalkingPhone(StockPhone):
    """A phone that shows another screen after each key."""

    place = 0

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        if command.path == "/screen":
            return CommandReply(200, chat_screen(self.place))
        if command.path == "/press_key":
            self.place += 1
            return CommandReply(200, {"key": "back"})
        return super().execute(command, now)


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parts_of(request: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Return the parts of a prompt in the order in which a model's server has them, each with its tokens."""
    tools = compact(request["tools"])
    texts = [(row.get("content") or "") + compact(row.get("tool_calls", "")) for row in request["messages"]]
    yield tools, count_tokens(tools)
    yield from ((text, count_tokens(text) + 4) for text in texts)


def prompt_tokens(requests: Sequence[Mapping[str, Any]]) -> int:
    return sum(tokens for request in requests for _, tokens in parts_of(request))


def shared_part(requests: Sequence[Mapping[str, Any]]) -> float:
    """Return which part of the prompts, the last one left out, the next prompt begins with."""
    whole = shared = 0
    for before, after in pairwise(requests):
        same = True
        following = list(parts_of(after))
        for place, (text, tokens) in enumerate(parts_of(before)):
            same = same and place < len(following) and following[place][0] == text
            whole, shared = whole + tokens, shared + tokens * same
    return shared / whole


def steps(*, few: bool, looks: bool) -> list[dict[str, Any]]:
    """Return the requests of a look, ten acts, each with a look behind it on demand, and the answer."""
    world = AgentHarness(phone=True, backend=WalkingPhone(), tools=ToolPolicy(few=few))
    look, act = calls(("phone_screen", {})), calls(("phone_press_key", {"key": "back"}))
    world.model.answers = [look, *([act, look] if looks else [act]) * 10, plain("Done.")]
    world.answer("Go through the chats.")
    assert all("error" not in finished.output for finished in world.host.finished)
    return world.model.seen


def test_tools() -> None:
    for few, limit in ((False, 1_700), (True, 700)):
        world = AgentHarness(phone=True, tools=ToolPolicy(few=few), model=[plain("Hello")])
        world.answer("Hello")
        assert count_tokens(compact(world.model.seen[0]["tools"])) <= limit


def test_first_prompt_of_a_small_model() -> None:
    world = AgentHarness(phone=True, model=[plain("Hello")])
    world.answer("Hello", model=evolve(ROUTE, context=4_096))
    assert prompt_tokens(world.model.seen) <= 1_500


@pytest.mark.parametrize(
    ("few", "looks", "limit", "shared"),
    [(False, False, 40_000, 0.9), (False, True, 70_000, 0.9), (True, False, 20_000, 0.8)],
)
def test_ten_steps(few: bool, looks: bool, limit: int, shared: float) -> None:
    requests = steps(few=few, looks=looks)
    assert len(requests) == (22 if looks else 12)
    assert prompt_tokens(requests) <= limit
    assert shared_part(requests) >= shared
