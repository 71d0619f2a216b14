from typing import Any

import pytest

from svc_proto.agent.builtin_commands import HELP, Plan, parse_command, parse_message
from svc_proto.agent.tools.tool import Tool, schema
from tests.support.playbook import make_flow

WORD = {"type": "string"}


def tool(name: str, *required: str, **properties: Any) -> Tool:
    parameters = schema(required, **properties)
    return Tool(name=name, description=f"Does {name}. And more.", parameters=parameters, run=lambda _: make_flow(""))


TOOLS = {
    each.name: each
    for each in (
        tool("phone_ping", device=WORD),
        tool("phone_tap", nodeId=WORD, x=WORD, y=WORD),
        tool("phone_tap_text", "text", text=WORD),
        tool("phone_send_sms", "to", "body", to=WORD, body=WORD),
        tool("phone_share_media", attachments={"type": "array"}, text=WORD),
        tool("phone_wait"),
    )
}


def call(line: str) -> tuple[str, dict[str, object]]:
    (found,) = parse_command(line, TOOLS).calls
    return found[0], dict(found[1])


@pytest.mark.parametrize("line", ["/help", "/", "/HELP me"])
def test_help(line: str) -> None:
    assert parse_command(line, TOOLS) == Plan(say=HELP)


def test_answers_without_a_call() -> None:
    assert "- `phone_ping`: Does phone_ping" in parse_command("/tools", TOOLS).say.splitlines()
    assert parse_command("/dance now", TOOLS).say == "I know no command /dance. `/help` lists those there are."
    assert parse_command("/think", TOOLS).think.startswith("First")
    assert parse_command("/memory", TOOLS).show_memory


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("/phone ping", "phone_ping", {}),
        ("/phone tap x=3 y=4", "phone_tap", {"x": "3", "y": "4"}),
        ("/phone tap text=OK", "phone_tap_text", {"text": "OK"}),
        ("/phone tap_text Sign in", "phone_tap_text", {"text": "Sign in"}),
        ("/phone tap_text text=Sign in now", "phone_tap_text", {"text": "Sign in now"}),
        ('/phone tap_text text="Sign in"', "phone_tap_text", {"text": "Sign in"}),
        ("/phone tap_text Don't", "phone_tap_text", {"text": "Don't"}),
        ("/phone tap_text a=b", "phone_tap_text", {"text": "a=b"}),
        ("/phone send_sms to=5 Hello you", "phone_send_sms", {"to": "5 Hello you"}),
        ("/phone send_sms Hello you to=5", "phone_send_sms", {"to": "5", "body": "Hello you"}),
        ("/phone share_media attachments=[1] text=x", "phone_share_media", {"attachments": [1], "text": "x"}),
        ("/phone share_media attachments=[1", "phone_share_media", {"attachments": "[1"}),
        ("/phone wait now", "phone_wait", {}),
        ("/screenshot", "phone_screenshot", {}),
        ("/skills", "skills_list", {}),
        ("/skill brew", "skill_view", {"name": "brew"}),
        ("/skill brew a/b.md", "skill_view", {"name": "brew", "file_path": "a/b.md"}),
        ("/memory add Likes tea", "memory", {"action": "add", "target": "memory", "content": "Likes tea"}),
        ("/memory add user Ada", "memory", {"action": "add", "target": "user", "content": "Ada"}),
        ("/memory add user", "memory", {"action": "add", "target": "user", "content": ""}),
        ("/memory remove users", "memory", {"action": "remove", "target": "memory", "old_text": "users"}),
        (
            "/memory replace tea => coffee",
            "memory",
            {"action": "replace", "target": "memory", "old_text": "tea", "content": "coffee"},
        ),
        ("/fail", "demo_fail", {}),
        ("/approve", "demo_ask", {}),
        ("/wait 3", "demo_wait", {"seconds": "3"}),
        ("/wait", "demo_wait", {"seconds": 1}),
    ],
)
def test_calls(line: str, name: str, arguments: dict[str, object]) -> None:
    assert call(line) == (name, arguments)


@pytest.mark.parametrize("line", ["/phone", "/phone dance", "/phone dance x=1"])
def test_unknown_phone_action(line: str) -> None:
    plan = parse_command(line, TOOLS)
    assert plan.calls == ()
    assert "ACTION is one of ping, tap, tap_text, send_sms, share_media, wait" in plan.say


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/count 3", "1 2 3"),
        ("/count 0", "Nothing to count."),
        ("/count x", "1 2 3 4 5 6 7 8 9 10"),
        ("/count 100000", "1 2 3 4 5 6 7 8 9 10"),
        ("/count 99999", " ".join(map(str, range(1, 10_001)))),
        ("/echo  Hello ", "Hello"),
        ("/echo", "…"),
        ("/memory dance", "Say `/memory add TEXT`, `/memory remove TEXT` or `/memory replace OLD => NEW`."),
    ],
)
def test_words(line: str, said: str) -> None:
    assert parse_command(line, TOOLS) == Plan(say=said)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *((text, "/help") for text in ("help", "Help!", "Help, please.", " ? ", "hilfe", "帮助", "/help")),
        *((text, "/phone ping") for text in ("phone ping", "Phone ping", "ping", "ping my phone")),
        ("phone tap text=Settings", "/phone tap text=Settings"),
        ("phone send_sms to=1 body='It is late'", "/phone send_sms to=1 body='It is late'"),
        *((text, "/screenshot") for text in ("screenshot", "Take a screenshot of my phone!", "show me the screenshot")),
        ("tools", "/tools"),
        ("memory", "/memory"),
        ("memory add likes Tea", "/memory add likes Tea"),
        ("skill notes", "/skill notes"),
        ("count 3", "/count 3"),
        ("echo Some Words", "/echo Some Words"),
    ],
)
def test_commands_need_no_slash(text: str, line: str) -> None:
    assert parse_message(text, TOOLS) == parse_command(line, TOOLS)


@pytest.mark.parametrize(
    "text",
    ["", "...", "Hello", "Can you help me with my taxes?", "My phone is broken", "phone is broken", "memory is short",
     "skill is what counts", "wait for me there", "What is a screenshot?"],
)  # fmt: skip
def test_other_messages_are_no_commands(text: str) -> None:
    assert parse_message(text, TOOLS) is None
