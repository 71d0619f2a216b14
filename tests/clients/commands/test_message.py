import json
from concurrent.futures import ThreadPoolExecutor

from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import websocket


def test_replies_to_the_message_are_printed(linked: CommandHome) -> None:
    linked.run("svc", "pair", "--register-code", "Q7M2ZK")
    with websocket(linked.port) as phone, ThreadPoolExecutor(1) as beside:
        phone.sign_in(pairing_code="Q7M2ZK", device_name="Phone", device_id="p", client_surface="android")
        phone.send_envelope("proactive", "proactive.subscribe", {})
        for arguments in ([], ["--json"]):
            phone.send_envelope("proactive", "proactive.reply", {"text": "To an earlier message"})
            asked = beside.submit(linked.run, "svc", "message", "Delete it?", "--wait", "30", *arguments)
            while (message := phone.receive_message())["type"] != "phone.message":
                pass
            reply_to = message["payload"]["message_id"]
            phone.send_envelope("proactive", "proactive.reply", {"text": "Yes", "reply_to": reply_to})
            shown = asked.result().out
            if arguments:
                answer = json.loads(shown)
                assert [answer["reply"]] == answer["replies"]
                assert answer["reply"]["text"] == "Yes"
            else:
                assert shown == "Yes\n"
    assert linked.run("svc", "message", "Delete it?", "--wait", "1").out == "No reply.\n"
