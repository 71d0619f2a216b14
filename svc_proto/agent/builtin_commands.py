"""Commands of the built-in agent: a typed line is parsed to a plan, without side effects.

A plan is text to emit, reasoning to show, tool calls whose results are shown after them, or an order to show the notes.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from attrs import frozen

from svc_proto.agent.tools.tool import Tool
from svc_proto.schema.json_object import json_value

__all__ = ["HELP", "Plan", "parse_command", "parse_message"]

MAX_COUNT = 10_000  # words of `/count`
HELP_WORDS = frozenset(
    (
        *("?", "help", "commands", "hilfe", "ayuda", "aide", "ajuda", "aiuto", "hulp", "hjälp", "hjælp", "apua"),
        *(
            "pomoc",
            "nápověda",
            "помощь",
            "допомога",
            "βοήθεια",
            "עזרה",
            "مساعدة",
            "मदद",
            "ヘルプ",
            "帮助",
            "幫助",
            "도움말",
        ),
    )
)
POLITE = frozenset(("please", "bitte", "now"))
_SCREENSHOT = re.compile(
    r"(?:(?:take|make|get|show)(?: me)? )?(?:a |the )?(?:phone )?screenshot(?: of (?:my|the) phone)?"
)
_PING = re.compile(r"ping(?: (?:my|the) phone)?")
_PAIR = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)

HELP = """\
I am the built-in agent. I understand commands, with and without the slash:
- `/tools` lists the tools, `/skills` and `/skill NAME` show skills
- `/phone ACTION NAME=VALUE …` drives the phone: `/phone ping`, `/phone screen`, `/phone tap text=Settings`,
  `/phone open_app com.android.settings`, `/phone type Hello`
- `/screenshot` takes a picture of its screen
- `/memory`, `/memory add TEXT`, `/memory remove TEXT`, `/memory replace OLD => NEW`, each with `user` before the text
  for what concerns you
- `/mcp` lists the MCP servers that I may use, `/mcp reload` starts them anew
- `/svc-relay-pair` shows a pairing code, to the operator at this host
- `/think` shows reasoning, `/parallel` several tools at once, `/fail` a tool that fails, `/approve` one that asks
  you first, `/count N` a long answer, `/echo TEXT` your own words"""


@frozen(kw_only=True)
class Plan:
    """Actions of the built-in agent for one message: text to emit, reasoning, tool calls, or the notes to be shown."""

    say: str = ""
    think: str = ""
    calls: tuple[tuple[str, Mapping[str, object]], ...] = ()
    show_memory: bool = False


PlanFactory: TypeAlias = Callable[[str, Mapping[str, Tool]], Plan]


def parse_command(line: str, tools: Mapping[str, Tool]) -> Plan:
    """Parse a command. For an unknown one the plan is an explanation, for an empty one the help."""
    name, _, rest = line.strip().removeprefix("/").partition(" ")
    make = _COMMANDS.get(name.lower() or "help")
    if make is None:
        return Plan(say=f"I know no command /{name[:40]}. `/help` lists those there are.")
    return make(rest.strip(), tools)


def parse_message(text: str, tools: Mapping[str, Tool]) -> Plan | None:
    """Parse a message as a command; return None if it is none. Some forms of a command need no slash."""
    line = text.strip()
    if line.startswith("/"):
        return parse_command(line, tools)
    words = [word for word in line.lower().rstrip(".!…").split() if word not in POLITE]
    plain = " ".join(words).rstrip(",")
    if plain in HELP_WORDS or plain.rstrip("?") in HELP_WORDS:
        return Plan(say=HELP)
    if _SCREENSHOT.fullmatch(plain):
        return parse_command("screenshot", tools)
    if _PING.fullmatch(plain):
        return parse_command("phone ping", tools)
    if not words:
        return None
    first, second = words[0], words[1] if len(words) > 1 else ""
    is_command = (
        (len(words) == 1 and first in _COMMANDS)
        or (first == "phone" and f"phone_{second}" in tools)
        or (first == "memory" and second in ("add", "remove", "replace"))
        or (first in ("skill", "count", "wait") and len(words) == 2)
        or first == "echo"
    )
    return parse_command(line, tools) if is_command else None


def _tools(rest: str, tools: Mapping[str, Tool]) -> Plan:
    lines = [f"- `{tool.name}`: {tool.description.partition('. ')[0].rstrip('.')}" for tool in tools.values()]
    return Plan(say="\n".join(["These tools are there:", *lines]))


def _phone(rest: str, tools: Mapping[str, Tool]) -> Plan:
    action, _, rest = rest.partition(" ")
    if action == "tap" and rest.strip().startswith("text="):
        action = "tap_text"
    tool = tools.get(f"phone_{action or '?'}")
    if tool is None:
        actions = ", ".join(name.removeprefix("phone_") for name in tools if name.startswith("phone_"))
        return Plan(
            say=f"Say what to do with the phone: `/phone ACTION NAME=VALUE …`, where ACTION is one of {actions}."
        )
    try:
        words = shlex.split(rest)
    except ValueError:
        words = rest.split()  # unbalanced quotes, such as an apostrophe
    arguments: dict[str, object] = {}
    free: list[str] = []
    properties = cast("Mapping[str, object]", tool.parameters["properties"])
    for word in words:
        pair = _PAIR.fullmatch(word)
        if pair is not None and pair[1] in properties:
            arguments[pair[1]] = _value(pair[2])
        elif free or not arguments or len(words) == 1:
            free.append(word)
        else:  # unquoted text with blanks: append to the last argument
            last = next(reversed(arguments))
            arguments[last] = f"{arguments[last]} {word}"
    wanted = [*cast("list[str]", tool.parameters.get("required", [])), *properties]
    place = next((name for name in wanted if name not in arguments), None)
    if free and place is not None:
        arguments[place] = " ".join(free)
    return Plan(calls=((tool.name, arguments),))


def _value(text: str) -> object:
    """Return the JSON value of a text that begins with a bracket or brace; any other or invalid text as it is."""
    return json_value(text, text) if text.startswith(("[", "{")) else text


def _memory(rest: str, tools: Mapping[str, Tool]) -> Plan:
    if not rest:
        return Plan(show_memory=True)
    action, _, text = rest.partition(" ")
    text = text.strip()
    target = "memory"
    if text == "user" or text.startswith("user "):
        target, text = "user", text.removeprefix("user").strip()
    arguments: dict[str, object] = {"action": action, "target": target}
    match action:
        case "add":
            arguments["content"] = text
        case "remove":
            arguments["old_text"] = text
        case "replace":
            old, _, new = text.partition("=>")
            arguments |= {"old_text": old.strip(), "content": new.strip()}
        case _:
            return Plan(say="Say `/memory add TEXT`, `/memory remove TEXT` or `/memory replace OLD => NEW`.")
    return Plan(calls=(("memory", arguments),))


def _skill(rest: str, tools: Mapping[str, Tool]) -> Plan:
    name, _, path = rest.partition(" ")
    return Plan(calls=(("skill_view", {"name": name, **({"file_path": path} if path else {})}),))


def _count(rest: str, tools: Mapping[str, Tool]) -> Plan:
    digits = rest if rest.isascii() and rest.isdigit() and len(rest) < 6 else "10"
    return Plan(
        say=" ".join(str(number) for number in range(1, min(int(digits), MAX_COUNT) + 1)) or "Nothing to count."
    )


def _always(plan: Plan) -> PlanFactory:
    return lambda rest, tools: plan


_COMMANDS: dict[str, PlanFactory] = {
    "help": _always(Plan(say=HELP)),
    "tools": _tools,
    "phone": _phone,
    "screenshot": _always(Plan(calls=(("phone_screenshot", {}),))),
    "memory": _memory,
    "skills": _always(Plan(calls=(("skills_list", {}),))),
    "skill": _skill,
    "think": _always(Plan(think="First I read the question. Then I think about it. Then I answer.", say="Thought of.")),
    "parallel": _always(
        Plan(calls=(("demo_wait", {"seconds": 2}), ("demo_wait", {"seconds": 1}), ("skills_list", {})))
    ),
    "fail": _always(Plan(calls=(("demo_fail", {}),))),
    "approve": _always(Plan(calls=(("demo_ask", {}),))),
    "wait": lambda rest, tools: Plan(calls=(("demo_wait", {"seconds": rest or 1}),)),
    "count": _count,
    "echo": lambda rest, tools: Plan(say=rest or "…"),
}
