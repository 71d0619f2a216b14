"""The types of the WebSocket messages: their channels, and the payloads that the relay sends in one scenario.

`tests/relay/phone_client.py` compares the members of received messages, except those with members of the gateway.
"""

from typing import Any

from fuzz.simulation.access_matrix import CHANNEL_ACCESS
from svc_proto.relay.agent_profiles import profile_entry
from svc_proto.relay.openapi.message_types import CLIENT_MESSAGES, SERVER_MESSAGES
from tests.relay.child_process_harness import ChildProcessHarness, Tmux, with_tui
from tests.relay.harness import RelayHarness
from tests.support.openapi_validation import OpenApiValidator

DOCUMENTED = OpenApiValidator.of(RelayHarness().request("GET", "/openapi.json").body)
MESSAGES = DOCUMENTED.operations["GET /ws"]["responses"]["101"]["x-messages"]


def test_documented_messages_match_the_channels() -> None:
    listeners = {message.strip() for _, row in CHANNEL_ACCESS.values() for message in row.split(",")}
    assert {*CLIENT_MESSAGES} == listeners | {"system auth"}
    assert [*MESSAGES["from-client"]] == [*CLIENT_MESSAGES]
    assert [*MESSAGES["from-server"]] == [*SERVER_MESSAGES]


def misfits(envelope: dict[str, Any]) -> list[str]:
    schema = MESSAGES["from-server"][f"{envelope['channel']} {envelope['type']}"]
    return DOCUMENTED.misfits(schema, envelope["payload"])


def test_scenario_with_every_message() -> None:
    book = ChildProcessHarness(tmux=Tmux("old"), config=with_tui())
    unknown_host = book.websocket()
    heard = [unknown_host.auth(pairing_code="WRONG1")]
    desktop, phone = book.client(bridge=0), book.pair().phone
    back = book.websocket()
    heard.append(back.auth(session_token=book.pair().token))
    book.request("POST", "/phone/message", {"text": "Done"})
    for channel, kind, payload in (
        ("system", "ping", {"ts": 1}),
        ("chat", "chat.send", {"text": "hi"}),
        ("absent", "x", {}),
        ("terminal", "terminal.attach", {"session_name": "default", "cols": "100"}),
        ("terminal", "terminal.list", {}),
        ("terminal", "terminal.resize", {"cols": "wide"}),
        ("tui", "tui.attach", {}),
        ("proactive", "proactive.subscribe", {}),
        ("proactive", "proactive.reply", {"text": "Thanks"}),
    ):
        desktop.send(channel, kind, payload)
    shell, gateway = book.children[-2:]
    shell.write_output(b"$ ")
    book.after(0.1)
    gateway.write_output(b'{"jsonrpc":"2.0","method":"event","params":{}}\n{"jsonrpc":"2.0","id":"r1","result":{}}\n')
    gateway.exit(3)
    desktop.send("terminal", "terminal.detach", {})
    desktop.send("terminal", "terminal.kill", {"session_name": "old"})
    book.call("GET", "/ping", token=book.pair().token)
    book.within(lambda: book.relay._profiles_found([profile_entry("work", {})]))
    for each in (desktop, phone, back):
        heard += each.envelopes()
    assert {f"{each['channel']} {each['type']}" for each in heard} == {*SERVER_MESSAGES}
    assert [mistake for each in heard for mistake in misfits(each)] == []
