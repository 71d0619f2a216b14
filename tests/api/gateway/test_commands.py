import pytest

from svc_proto.commands import ReadConfig
from svc_proto.schema.json_rpc import METHOD_NOT_FOUND
from tests.api.gateway_client import open_chat, open_gateway
from tests.api.harness import HOME, ApiHarness
from tests.api.scripted_agent import TurnHarness


def test_the_catalogue_has_commands_and_skills() -> None:
    catalog = open_gateway(TurnHarness()).call("commands.catalog")
    names = [name for name, _ in catalog["pairs"]]
    assert {"/help", "/status", "/phone", "/screenshot"} <= {*names}
    assert [row["name"] for row in catalog["categories"]] == ["Chat", "Agent"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/help", "/screenshot: "),
        ("/status", "State: idle"),
        ("/model", "- svc-agent (builtin)"),
        ("/personality", "There are: none"),
        ("/reasoning", "that of the model"),
        ("/tools", "phone_ping"),
        ("/skills", "There are no skills."),
        ("/memory", "memory ("),
    ],
)
def test_commands_are_answered(command: str, words: str) -> None:
    phone = open_gateway(TurnHarness())
    assert words in phone.call("slash.exec", session_id=phone.new_session(), command=command)["output"]


def test_a_dispatched_command_becomes_a_prompt() -> None:
    book = ApiHarness()
    phone = open_gateway(book)
    session = phone.new_session()
    for command in ("/phone ping", "/memory add tea", "/moon"):
        assert phone.refusal("slash.exec", session_id=session, command=command)[0] == 4018
    sent = phone.call("command.dispatch", name="/tools", arg="")
    assert sent == {"type": "send", "message": "/tools"}
    assert phone.call("command.dispatch", name="phone", arg="ping ")["message"] == "/phone ping"
    assert phone.refusal("command.dispatch", name="moon")[0] == METHOD_NOT_FOUND
    phone.call("prompt.submit", session_id=session, text=sent["message"])
    book.after(30.0)
    assert "phone_ping" in phone.last("message.complete")["text"]


def test_skills_are_commands() -> None:
    book = TurnHarness(files={f"{HOME}/skills/tea/SKILL.md": "---\nname: tea\ndescription: Makes tea\n---\nBoil.\n"})
    phone = open_gateway(book)
    skills = phone.call("commands.catalog")["categories"][-1]
    assert skills == {"name": "Skills", "pairs": [["/skill tea", "Makes tea"]]}
    assert phone.call("slash.exec", session_id=phone.new_session(), command="/skills")["output"] == "- tea: Makes tea"


def test_an_unreadable_memory_and_a_running_turn() -> None:
    book, phone, session = open_chat("Hi")
    assert "a turn is under way" in phone.call("slash.exec", session_id=session, command="/status")["output"]
    book.refuse = (ReadConfig,)
    assert "cannot be read" in phone.call("slash.exec", session_id=session, command="/memory")["output"]
    assert phone.call("tools.list")["toolsets"][0]["tools"]
