import json
from typing import Any

import pytest

from svc_proto.agent.builtin_commands import HELP, Plan, parse_command, parse_message
from svc_proto.agent.tools.tool import Tool, schema
from tests.support.playbook import make_flow
from tests.support.tables import read_table

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


@pytest.mark.parametrize("line", ["/help", "/", "/HELP me"])
def test_help(line: str) -> None:
    assert parse_command(line, TOOLS) == Plan(say=HELP)


def test_answers_without_a_call() -> None:
    assert "- `phone_ping`: Does phone_ping" in parse_command("/tools", TOOLS).say.splitlines()
    assert parse_command("/dance now", TOOLS).say == "I know no command /dance. `/help` lists those there are."
    assert parse_command("/think", TOOLS).think.startswith("First")
    assert parse_command("/memory", TOOLS).show_memory


@pytest.mark.parametrize("row", read_table("tests/agent/builtin_commands.tsv"), ids=lambda row: row["line"])
def test_calls(row: dict[str, str]) -> None:
    assert parse_command(row["line"], TOOLS).calls == ((row["tool"], json.loads(row["arguments"])),)


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
