"""Program that adds a made-up route to the Device Control table, and prints what parts of the project show of it.

Most of these parts read the table when they are imported, so the row comes first.
"""

import json
import sys

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.backend import HANDLERS
from clients.phone.emulator.device import EmulatedDevice
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments
from svc_proto.phone.backend import CommandReply, CommandResponse
from svc_proto.schema.device_control import ControlRoute, ControlTool, RouteEffect, ScreenGesture
from svc_proto.schema.device_control_arguments import integer_rule
from svc_proto.schema.device_control_routes import DEVICE_CONTROL

SUMMARY = "Vibrate for a number of milliseconds"


def vibrate(device: EmulatedDevice, args: CommandArguments, now: Moment) -> CommandResponse:
    """Handle the made-up route: return the reply of a phone that vibrates."""
    return CommandReply(200, {"vibrated": args.integer("ms")})


ROUTE = ControlRoute(
    method="POST", path="/vibrate", summary=SUMMARY, sentence=("Vibrated", "vibrate"), effect=RouteEffect.ACTS,
    wakes_screen=True, checks_target=True, gesture=ScreenGesture.KEY, by_hand="vibrate", rules=(integer_rule("ms"),),
    tools=(
        ControlTool(
            name="vibrate", description="Let the phone vibrate.", required=("ms",),
            properties={"ms": {"type": "integer"}},
        ),
    ),
)  # fmt: skip


def reply(answer: object) -> CommandReply:
    """Return the argument, which must be a finished reply of a phone."""
    assert isinstance(answer, CommandReply)
    return answer


def find_places() -> dict[str, object]:
    """Add the made-up route to the table, and return what the relay, phones, agent, pages and tests show of it."""
    DEVICE_CONTROL[ROUTE.method, ROUTE.path] = ROUTE
    HANDLERS["vibrate"] = vibrate
    from fuzz.simulation.access_matrix import RELAY_ACCESS, expected_access
    from servers.dashboard_program import page_files
    from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
    from svc_proto.dashboard.phone_commands import COMMANDS
    from svc_proto.phone.screen_server import TOUCHES
    from tests.phone.safety.scripted_backend import BANK, NOW, command, gated
    from tests.relay.harness import REMOTE, RelayHarness
    from tests.relay.mcp_client import RelayMcpClient
    from tests.support import authority_table, routes_page

    relay = RelayHarness()
    paired = relay.pair()
    refused = relay.request("POST", "/vibrate", {"ms": "long"}, token=paired.token, peer=REMOTE)
    call = relay.call("POST", "/vibrate", {"ms": 5}, token=paired.token, peer=REMOTE)
    sent = paired.phone.command()
    paired.phone.reply(sent, 200, {"vibrated": 5})
    document = relay.request("GET", "/openapi.json").json
    operation = document["paths"]["/vibrate"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    section = routes_page.section_of(routes_page.RELAY, document)
    _, closed = gated(master=False)
    backend, gate = gated()
    (row,) = [row for row in PHONE_TOOLS if row.route.path == "/vibrate"]
    phone = EmulatedPhone()
    offered = RelayMcpClient(relay).request("tools/list")["tools"]
    (mcp,) = [tool for tool in offered if tool["name"] == "phone_vibrate"]
    return {
        "argument check": [refused.status, refused.json["field"]],
        "relay": [sent["method"], sent["path"], sent["body"], call.result.json],
        "summary": operation["summary"],
        "required members": document["components"]["schemas"][body]["required"],
        "reference page": f"| `POST /vibrate` | {SUMMARY}." in section,
        "gate, master off": reply(closed.execute(command("/vibrate"), NOW)).result["error_code"],
        "gate, target": reply(gate.execute(command("/vibrate", package=BANK), NOW)).result["error"],
        "gate, open": [reply(gate.execute(command("/vibrate", "r2"), NOW)).status, len(backend.asked), backend.woken],
        "reference phone": reply(phone.execute(command("/vibrate", ms=5), NOW)).result,
        "agent": [row.name, row.tool.description, row.parameters["required"]],
        "MCP": [mcp["description"], mcp["annotations"]["readOnlyHint"]],
        "dashboard": COMMANDS["vibrate"],
        "phone's page": TOUCHES["vibrate"],
        "sentence": b'"/vibrate": [t("Vibrated"), t("vibrate")]' in page_files()["command_sentences.js"],
        "access matrix": expected_access(RELAY_ACCESS, "rich_phone")["POST /vibrate"],
        "authority": ["`POST /vibrate`" in authority_table.page(), "`phone_vibrate`" in authority_table.page()],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(find_places()))
