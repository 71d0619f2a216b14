from __future__ import annotations

import json

from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import websocket


def test_all_replies_of_the_owner_are_printed(linked: CommandHome) -> None:
    linked.run("svc", "pair", "--register-code", "Q7M2ZK")
    with websocket(linked.port) as phone:
        phone.sign_in(pairing_code="Q7M2ZK", device_name="Phone", device_id="p", client_surface="android")
        phone.send_envelope("proactive", "proactive.subscribe", {})
        for arguments in ([], ["--json"]):
            for text in ("Yes", "But not today"):
                phone.send_envelope("proactive", "proactive.reply", {"text": text})
            phone.send_envelope("system", "ping", {})
            while phone.receive_message()["type"] != "pong":
                pass
            shown = linked.run("svc", "message", "Delete it?", "--wait", "30", *arguments).out
            if arguments:
                answer = json.loads(shown)
                assert answer["reply"] == answer["replies"][0]
                assert [reply["text"] for reply in answer["replies"]] == ["Yes", "But not today"]
            else:
                assert shown == "Yes\nBut not today\n"
    assert linked.run("svc", "message", "Delete it?", "--wait", "1").out == "No reply.\n"
