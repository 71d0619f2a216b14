from typing import Any

import pytest

from svc_proto.commands import Notify
from svc_proto.facts import Received
from svc_proto.phone.terminal_channels import MAX_QUEUED_LINES, OPEN_TIMEOUT, PAIR_ANEW
from tests.phone.harness import KEYS, PhoneHarness, SentEnvelope, with_keyboard

ATTACHED = {"session_name": "reference-phone-tab1", "pid": 7}
SIZE = {"cols": 80, "rows": 24}
SUBMITTED = {"jsonrpc": "2.0", "id": "r1", "result": {"session_id": "s1"}}


def typed(rig: PhoneHarness, line: str) -> list[SentEnvelope]:
    """Type a line and return the envelopes that follow."""
    rig.type(line)
    return rig.sent_envelopes()


def told(rig: PhoneHarness) -> list[tuple[str, Any]]:
    return [(tell.event, next(iter(tell.fields.values()))) for tell in rig.new_notifications()]


def heard(rig: PhoneHarness, channel: str, kind: str, payload: object) -> list[SentEnvelope]:
    rig.message(channel, kind, payload)
    return rig.sent_envelopes()


def event(kind: str, **payload: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "event", "params": {"type": kind, "payload": payload}}


def rpc(said: SentEnvelope) -> tuple[str, Any]:
    assert (said.channel, said.type, said.payload["jsonrpc"]) == ("tui", "tui.rpc.request", "2.0")
    return said.payload["method"], said.payload["params"]


def at_shell() -> PhoneHarness:
    rig = with_keyboard()
    typed(rig, "shell uname")
    heard(rig, "terminal", "terminal.attached", ATTACHED)
    rig.new_notifications()
    return rig


def at_agent() -> PhoneHarness:
    rig = with_keyboard()
    typed(rig, "chat hello")
    heard(rig, "tui", "tui.attached", {"pid": 9})
    heard(rig, "tui", "tui.rpc.response", SUBMITTED)
    rig.new_notifications()
    return rig


def test_a_shell() -> None:
    rig = with_keyboard()
    (attach,) = typed(rig, "shell  Uname -a")
    assert (attach.type, attach.payload) == ("terminal.attach", {"session_name": "reference-phone-tab1", **SIZE})
    assert typed(rig, "shell ls") == []  # until the terminal is attached
    named = {"session_name": "tab1", "replay": "$ \n"}
    lines = heard(rig, "terminal", "terminal.attached", named)
    assert [(said.type, said.payload) for said in lines] == [
        ("terminal.input", {"session_name": "tab1", "data": "Uname -a\r"}),
        ("terminal.input", {"session_name": "tab1", "data": "ls\r"}),
    ]
    assert heard(rig, "terminal", "terminal.attached", named) == []  # once
    for payload in ({"data": "Linux\r\n"}, {"data": 7}, {}):
        heard(rig, "terminal", "terminal.output", payload)
    heard(rig, "terminal", "terminal.sessions", {})
    assert told(rig) == [("terminal", "$ \n"), ("terminal", "Linux\r\n")]
    (input_,) = typed(rig, "shell pwd")
    assert input_.payload["data"] == "pwd\r"
    assert [said.type for said in typed(rig, "leave")] == ["terminal.detach"]
    assert told(rig) == [("note", "shell: left")]
    assert typed(rig, "leave") == []
    assert told(rig) == [("note", "there is nothing to leave")]


@pytest.mark.parametrize(
    ("kind", "payload", "why"),
    [
        ("terminal.detached", {"reason": "eof"}, "eof"),
        ("terminal.error", {"message": "session cap reached"}, "session cap reached"),
        ("terminal.error", {"message": None}, "no reason given"),
    ],
)
def test_a_shell_that_ends(kind: str, payload: dict[str, object], why: str) -> None:
    rig = at_shell()
    heard(rig, "terminal", kind, payload)
    heard(rig, "terminal", kind, payload)  # the terminal has ended
    assert told(rig) == [("note", f"shell: {why}")]
    assert [said.type for said in typed(rig, "shell again")] == ["terminal.attach"]


def test_attach_timeout() -> None:
    rig = with_keyboard()
    typed(rig, "shell a")
    for _ in range(MAX_QUEUED_LINES):
        typed(rig, "shell b")
    assert told(rig) == [("note", "shell: too many lines wait already")]
    commands = rig.book.after(OPEN_TIMEOUT).drain_commands()
    assert Notify("note", {"text": f"shell: no answer in time; not sent: {MAX_QUEUED_LINES}"}) in commands
    assert typed(rig, "leave") == []
    rig = at_shell()
    commands = rig.book.after(OPEN_TIMEOUT).drain_commands()
    assert Notify("note", {"text": "shell: no answer in time"}) not in commands


def test_refusal_ends_the_requested_channel() -> None:
    rig = at_shell()
    typed(rig, "chat hello")
    rig.new_notifications()
    heard(rig, "system", "error", {"message": "tui grant expired or missing"})
    assert told(rig) == [("note", f"chat: tui grant expired or missing; {PAIR_ANEW}; not sent: 1")]
    typed(rig, "chat hello")
    rig.new_notifications()
    heard(rig, "system", "error", {"message": "unknown channel"})
    assert told(rig) == [("note", "chat: unknown channel; not sent: 1")]
    assert [said.type for said in typed(rig, "shell on")] == ["terminal.input"]


def test_without_a_relay_both_channels_end() -> None:
    rig = at_shell()
    typed(rig, "chat hello")
    rig.new_notifications()
    rig.vanish()
    notes = [text for kind, text in told(rig) if kind == "note"]
    assert notes == ["shell: the connection is lost", "chat: the connection is lost; not sent: 1"]
    rig.book >> Received(KEYS, b"shell b\n")
    rig.book.drain_commands()
    assert ("note", "there is no relay at the moment") in told(rig)
    rig = with_keyboard(online=False)
    for line in ("shell a", "chat b"):
        rig.type(line)
        assert [tell.fields["text"] for tell in rig.book.drain_commands() if isinstance(tell, Notify)] == [
            "there is no relay at the moment"
        ]


def test_the_agent() -> None:
    rig = with_keyboard()
    (attach,) = typed(rig, "chat What is it?")
    assert (attach.type, attach.payload) == ("tui.attach", SIZE)
    assert heard(rig, "tui", "tui.rpc.event", event("gateway.ready", skin={})) == []
    (create,) = heard(rig, "tui", "tui.attached", {"pid": 9})
    assert rpc(create) == ("session.create", {"cols": 80})
    assert heard(rig, "tui", "tui.attached", {}) and rig.new_notifications() == []  # noqa: PT018 - one step
    (submit,) = heard(rig, "tui", "tui.rpc.response", SUBMITTED)
    assert rpc(submit) == ("prompt.submit", {"session_id": "s1", "text": "What is it?"})
    heard(rig, "tui", "tui.rpc.response", {"jsonrpc": "2.0", "id": "r2", "result": {"status": "streaming"}})
    heard(rig, "tui", "tui.rpc.event", event("message.start"))
    heard(rig, "tui", "tui.rpc.event", event("tool.start", name="phone_ping", context=""))
    heard(rig, "tui", "tui.rpc.event", event("message.delta", text="A phone."))
    heard(rig, "tui", "tui.rpc.event", event("message.complete", text="A phone.", status="complete"))
    assert told(rig) == [("note", "chat: → phone_ping"), ("answer", "A phone."), ("answered", "complete")]
    assert [rpc(said)[1]["text"] for said in typed(rig, "chat Why?")] == ["Why?"]
    assert [said.type for said in typed(rig, "leave")] == ["tui.detach"]
    assert heard(rig, "tui", "tui.rpc.event", event("message.delta", text="late")) == []
    assert told(rig) == [("note", "chat: left")]


def test_line_waits_for_the_previous_answer() -> None:
    rig = at_agent()
    assert typed(rig, "chat Two") == typed(rig, "chat Three") == []
    assert told(rig) == [("note", "chat: the agent has not answered yet: this goes to it next")] * 2
    heard(rig, "tui", "tui.rpc.event", event("message.delta", text="One."))
    assert [tell.fields for tell in rig.new_notifications()] == [{"text": "One."}]
    (two,) = heard(rig, "tui", "tui.rpc.event", event("message.complete", text="One.", status="complete"))
    assert rpc(two) == ("prompt.submit", {"session_id": "s1", "text": "Two"})
    error = {"code": 4009, "message": "session busy"}
    refusal = {"jsonrpc": "2.0", "error": error}
    assert heard(rig, "tui", "tui.rpc.response", {**refusal, "id": "r1"}) == []  # of another call
    (three,) = heard(rig, "tui", "tui.rpc.response", {**refusal, "id": two.payload["id"]})
    assert rpc(three)[1]["text"] == "Three"
    typed(rig, "chat Four")
    rig.new_notifications()
    typed(rig, "leave")
    assert told(rig) == [("note", "chat: left; not sent: 1")]
    assert [said.type for said in typed(rig, "chat Five")] == ["tui.attach"]
    (create,) = heard(rig, "tui", "tui.attached", {})
    opened = {**SUBMITTED, "id": create.payload["id"]}
    assert [rpc(said)[1]["text"] for said in heard(rig, "tui", "tui.rpc.response", opened)] == ["Five"]


def test_agent_that_denies_refuses_or_has_no_session() -> None:
    rig = at_agent()
    (answer,) = heard(rig, "tui", "tui.rpc.event", event("approval.request", command="send_intent"))
    assert rpc(answer) == ("approval.respond", {"session_id": "s1", "choice": "deny"})
    assert told(rig) == [("note", "chat: the agent asks for more than it may do from here: denied")]
    for error, why in (({"code": 4009, "message": "session busy"}, "session busy"), (7, "refused")):
        heard(rig, "tui", "tui.rpc.response", {"jsonrpc": "2.0", "id": "r2", "error": error})
        assert told(rig) == [("note", f"chat: {why}")]
    heard(rig, "tui", "tui.rpc.response", {"jsonrpc": "2.0", "id": "r2", "result": []})
    heard(rig, "tui", "tui.other", {})
    heard(rig, "tui", "tui.error", {"message": "the agent gateway exited with 1"})
    assert told(rig) == [("note", "chat: the agent gateway exited with 1")]
    rig = with_keyboard()
    typed(rig, "chat hello")
    heard(rig, "tui", "tui.attached", {})
    assert heard(rig, "tui", "tui.rpc.response", {"result": {}}) == []
    refusal = {"error": {"code": -32000, "message": "no API server"}}
    assert [said.type for said in heard(rig, "tui", "tui.rpc.response", refusal)] == ["tui.detach"]
    assert told(rig) == [("note", "chat: no API server; not sent: 1")]
