"""Tokens of what a model receives for work on a phone: tools, screens, matches, and the prompts of ten steps."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from svc_proto.agent.tool_selection import ToolPolicy
from svc_proto.agent.tools.phone_screen import parse_screen
from svc_proto.agent.tools.phone_screen_text import screen_head, screen_lines
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from svc_proto.schema.json_object import JsonObject
from tests.agent.harness import AgentHarness
from tests.agent.tools.phone_world import StockPhone, screen_body
from tests.support.servers.model_server import calls, plain

__all__ = ["match_tokens", "prompt_tokens", "screen_tokens", "shared_part", "steps", "tool_tokens"]

PLACES = ("harbour", "station", "library", "market", "garden", "bridge", "museum", "theatre", "bakery", "school")
ROW = {"clickable": True, "longClickable": True, "viewId": "com.chat:id/row"}
ICON = {"clickable": True, "contentDescription": "More options"}
TAB = {"clickable": True, "className": "android.widget.TextView"}


@cache
def _encoding() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package, for its own tables
        import bpe_openai

        return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """Return the number of a text's tokens in the encoding o200k_base."""
    return len(_encoding().encode(text))


def chat_screen(place: int) -> dict[str, Any]:
    """Return an answer to `GET /screen` with a list of chats: entries of three texts and a button each, and tabs."""
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


def screen_tokens(count: int = 12) -> int:
    """Return the number of tokens that a model receives for `count` screens."""
    found = [parse_screen(JsonObject(chat_screen(place))) for place in range(count)]
    return sum(count_tokens("\n".join([screen_head(412, each), *screen_lines(each)])) for each in found)


def match_tokens() -> float:
    """Return the average number of tokens of a row of a screen."""
    screen = parse_screen(JsonObject(chat_screen(3)))
    return count_tokens("\n".join(screen_lines(screen))) / len(screen.rows)


def tool_tokens(*, few: bool) -> int:
    """Return the number of tokens of the tool definitions in a chat with a phone."""
    world = AgentHarness(phone=True, tools=ToolPolicy(few=few), model=[plain("Hello")])
    world.answer("Hello")
    return count_tokens(compact(world.model.seen[0]["tools"]))


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
    """Yield the parts of a prompt in the order in which a model's server has them, each with its number of tokens."""
    tools = compact(request["tools"])
    texts = [(row.get("content") or "") + compact(row.get("tool_calls", "")) for row in request["messages"]]
    yield tools, count_tokens(tools)
    yield from ((text, count_tokens(text) + 4) for text in texts)


def prompt_tokens(requests: Sequence[Mapping[str, Any]]) -> int:
    return sum(tokens for request in requests for _, tokens in parts_of(request))


def common_start(one: str, other: str) -> str:
    length = next((place for place, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), None)
    return one[: min(len(one), len(other)) if length is None else length]


def shared_part(requests: Sequence[Mapping[str, Any]]) -> float:
    """Return which part of the prompts' tokens (0 to 1) is also the beginning of the following prompt.

    A model's server has that part in its cache. The last prompt, which none follows, is not counted.
    """
    whole = shared = 0
    for before, after in pairwise(requests):
        same = True
        following = list(parts_of(after))
        for place, (text, tokens) in enumerate(parts_of(before)):
            whole += tokens
            if same:
                there = following[place][0] if place < len(following) else ""
                same = there == text
                shared += tokens if same else count_tokens(common_start(text, there))
    return shared / whole


def steps(*, few: bool, looks: bool) -> list[dict[str, Any]]:
    """Return the model requests of one turn: for a look at the screen, ten acts, and the last answer.

    With `looks`, there is also a look behind each act.
    """
    world = AgentHarness(phone=True, backend=WalkingPhone(), tools=ToolPolicy(few=few))
    look, act = calls(("phone_screen", {})), calls(("phone_press_key", {"key": "back"}))
    world.model.answers = [look, *([act, look] if looks else [act]) * 10, plain("Done.")]
    world.answer("Go through the chats.")
    assert all("error" not in finished.output for finished in world.host.finished)
    return world.model.seen
