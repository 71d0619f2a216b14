"""Test driver that sends commands by route to an emulated phone, on a clock of its own, and checks the replies."""

import json
from collections.abc import Iterable, Mapping
from typing import Self

from clients.phone.emulator.backend import EmulatedPhone
from clients.phone.emulator.layout import App
from clients.phone.emulator.sample_apps import SAMPLE_APPS
from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, DelayedReply, PhoneCommand, UploadReply

STATUSES = (200, 400, 403, 404, 405, 423, 500, 503)  # 1.2


class EmulatorDriver:
    """Driver that sends commands to an emulated phone, each one second after the one before, and checks replies.

    `perform` alone returns a reply unchecked.
    """

    def __init__(self, apps: Iterable[App] = SAMPLE_APPS) -> None:
        self.backend = EmulatedPhone(seed_apps=apps)
        self.device = self.backend.device
        self.now = Moment(100.0, 1_795_310_560.0)

    def perform(self, method: str, path: str, body: Mapping[str, object] | None = None) -> CommandResponse:
        self.now = self.now.at(self.now.mono + 1.0)
        return self.backend.execute(PhoneCommand(method, path, body or {}, "r1"), self.now)

    def reply(self, method: str, path: str, body: Mapping[str, object] | None = None) -> CommandReply:
        outcome = self.perform(method, path, body)
        assert isinstance(outcome, CommandReply)
        check(outcome)
        return outcome

    def get(self, path: str, /, **body: object) -> dict[str, object]:
        reply = self.reply("GET", path, body)
        assert reply.status == 200, reply
        return dict(reply.result)

    def post(self, path: str, /, **body: object) -> dict[str, object]:
        reply = self.reply("POST", path, body)
        assert reply.status == 200, reply
        return dict(reply.result)

    def refused(self, route: str, status: int = 400, /, **body: object) -> Mapping[str, object]:
        """Send a command that must be refused with this status, and return its result.

        The route is a path, with the method and a space before it unless the method is POST.
        """
        method, _, path = route.rpartition(" ")
        reply = self.reply(method or "POST", path, body)
        assert reply.status == status, reply
        assert isinstance(reply.result["error"], str)
        return reply.result

    def press(self, *texts: str) -> Self:
        """Tap nodes with exactly these texts, one after the other."""
        for text in texts:
            self.post("/tap_text", text=text, exact=True)
        return self

    def texts(self) -> list[str]:
        """Return the text, or else the description, of each node on the screen, in walk order."""
        return [str(node["text"] or node["contentDescription"]) for node in self.nodes()]

    def nodes(self) -> list[dict[str, object]]:
        nodes = self.get("/screen")["nodes"]
        assert isinstance(nodes, list)
        return nodes

    def node_id(self, **wanted: object) -> str:
        """Return the id of the first node on the screen with all `wanted` members, else raise AssertionError."""
        for node in self.nodes():
            if all(node[key] == value for key, value in wanted.items()):
                return str(node["nodeId"])
        raise AssertionError(f"no node with {wanted}")


def opened(package: str, apps: Iterable[App] = SAMPLE_APPS) -> EmulatorDriver:
    """Return the driver of a phone on whose screen this app is open."""
    driver = EmulatorDriver(apps)
    assert driver.post("/open_app", package=package) == {"ok": True, "package": package}
    return driver


def check(outcome: CommandResponse) -> None:
    """Assert that an answer has an allowed status, survives JSON in UTF-8, and has an error text exactly if refused.

    Of an upload, only the file name is checked: it must end with `.png`.
    """
    if isinstance(outcome, UploadReply):
        assert outcome.file_name.endswith(".png")
        return
    if isinstance(outcome, DelayedReply):
        assert 0 <= outcome.seconds <= 15
        outcome = outcome.reply
    assert outcome.status in STATUSES
    assert isinstance(outcome.result, dict)
    sent = json.dumps(outcome.result, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert json.loads(sent) == outcome.result
    assert ("error" in outcome.result) == (outcome.status != 200)
