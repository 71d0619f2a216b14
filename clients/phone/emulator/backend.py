"""Phone backend of the emulator: performs a command at a given time and returns the reply.

It has no policy. Safety gates check commands before, with `foreground`, `text_of`, `texts_pressed` and `consents`.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from clients.phone.emulator import routes_act, routes_comms, routes_read, routes_share
from clients.phone.emulator.device import EmulatedDevice
from clients.phone.emulator.environment import EmulatedPermissions, Gesture, OutboxItem
from clients.phone.emulator.layout import App
from clients.phone.emulator.routes_read import hash_of
from clients.phone.emulator.sample_apps import SAMPLE_APPS, client_app
from clients.phone.emulator.touch_target import texts_at_target
from clients.phone.emulator.view_tree import find_node, list_nodes
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments, replace_lone_surrogates
from svc_proto.phone.backend import CommandRefused, CommandReply, CommandResponse, PhoneCommand
from svc_proto.schema.device_control_routes import DEVICE_CONTROL

__all__ = ["EmulatedPhone", "HANDLERS", "RouteAction", "find_action", "methods_of"]

APPLICATIONS = {"sideload": "com.example.client.sideload", "googlePlay": "com.example.client"}  # by flavor
PERMANENT = (  # capability ids of 5.10; a phone without gates grants all of them
    "clipboard_read",
    "clipboard_write",
    "communications",
    "contacts_read",
    "device_info",
    "location_read",
    "media_control",
    "outbound_sharing",
)
UNLIMITED = ("screen_control", "screen_inspection")


class EmulatedPhone:
    """A simulated phone. `build` is a flavor of wire/bridge.md 1.3: `sideload` or `googlePlay`."""

    def __init__(
        self, *, name: str = "Reference phone", build: str = "sideload", seed_apps: Iterable[App] = SAMPLE_APPS
    ) -> None:
        self.name = name
        self.build = build
        self.application_id = APPLICATIONS[build]
        self.device = EmulatedDevice(seed_apps, client=client_app(self.application_id))

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        """Perform one command. A refusal is a reply with status and `error`."""
        self.device.advance(now)
        action = find_action(command.method, command.path)
        if action is None:
            return _no_route(command)
        args = CommandArguments(command.body)
        try:
            if (wanted := args.non_blank_text("if_hash")) is not None and wanted != self._screen_hash():
                raise CommandRefused(400, "the screen is not the one that the command was meant for", "screen_changed")
            return action(self.device, args, now)
        except CommandRefused as refusal:
            return refusal.to_reply()

    def _screen_hash(self) -> str:
        return hash_of(list_nodes(self.device.readable())[0])

    def on_uploaded(self, token: str, scheme: str) -> CommandReply:
        """Return the reply to `/screenshot` after the upload of the picture as `token`; `scheme` is the brand's."""
        return CommandReply(200, {"media": f"MEDIA:{scheme}://{token}"})

    def status(self, now: Moment) -> dict[str, object]:
        """Return the payload of `bridge.status` (wire/bridge.md 1.3).

        Safety gates replace `safety`, and overwrite members of `bridge` and `unattended`.
        """
        device, permissions = self.device, self.device.permissions
        sideload = self.build == "sideload"
        accessible = sideload and permissions.accessibility
        current_app = device.foreground()
        return {
            "device": {
                "name": self.name,
                "battery_percent": device.battery_percent,
                "screen_on": device.screen_on,
                "current_app": current_app,
                "flavor": self.build,
                "application_id": self.application_id,
            },
            "bridge": {
                "device_control_supported": sideload,
                "master_enabled": accessible,
                "accessibility_granted": accessible,
                "screen_capture_granted": sideload and permissions.screen_capture,
                "overlay_granted": sideload and permissions.overlay,
                "notification_listener_granted": permissions.notification_listener,
            },
            "safety": {
                "blocklist_count": 0,
                "destructive_verbs_count": 0,
                "auto_disable_minutes": 0,
                "auto_disable_at_ms": None,
            },
            "capabilities": {
                "schema_version": 1,
                "permanent": list(PERMANENT) if sideload else [],
                "timed": {},
                "unlimited": list(UNLIMITED) if sideload else [],
            },
            "unattended": {
                "supported": sideload,
                "enabled": False,
                "credential_lock_detected": device.credential_lock,
            },
            "screen_on": device.screen_on,
            "battery": device.battery_percent,
            "current_app": current_app,
            "accessibility_enabled": accessible,
            "ts": int(now.wall * 1000),
        }

    @property
    def foreground(self) -> str:
        """Return the package in front, for the blocklist; `unknown` without the accessibility service."""
        return self.device.foreground()

    def text_of(self, node_id: str) -> str | None:
        """Return the text of a node on the screen, or its description, for the verb gate.

        None without such a node, or if it has neither.
        """
        seen = find_node(self.device.windows(), node_id)
        return None if seen is None else seen.node.text or seen.node.description

    def texts_pressed(self, command: PhoneCommand) -> tuple[str, ...]:
        """Return the texts of the nodes that a tap or long press names or presses; see `texts_at_target`."""
        return texts_at_target(self.device, command)

    @property
    def consents(self) -> EmulatedPermissions:
        """Return the user's grants, which the gates read and change."""
        return self.device.permissions

    def wake(self, now: Moment) -> bool:
        """Turn the display on and dismiss a lock without credential; return whether the phone is unlocked."""
        return self.device.wake(now)

    @property
    def outbox(self) -> deque[OutboxItem]:
        """Return the latest items that left the phone or were opened for its user to send, oldest first."""
        return self.device.outbox

    @property
    def gestures(self) -> deque[Gesture]:
        """Return the latest taps, long presses, swipes and drags at points, oldest first."""
        return self.device.gestures


def _no_route(command: PhoneCommand) -> CommandReply:
    allowed = methods_of(command.path)
    if allowed:
        return CommandReply(405, {"error": f"method: {command.path} takes {' or '.join(allowed)}"})
    return CommandReply(404, {"error": f"path: unknown command {replace_lone_surrogates(command.path[:100])}"})


# --- routes -----------------------------------------------------------------------------------------------------------


RouteAction: TypeAlias = Callable[[EmulatedDevice, CommandArguments, Moment], CommandResponse]
HANDLERS: dict[str, RouteAction] = {
    name: getattr(module, name)
    for module in (routes_read, routes_act, routes_comms, routes_share)
    for name in module.__all__
}


def find_action(method: str, path: str) -> RouteAction | None:
    """Return the handler of a route; None for a pair that is not in the table."""
    row = DEVICE_CONTROL.get((method, path))
    return None if row is None else HANDLERS[row.handler or path.removeprefix("/")]


def methods_of(path: str) -> list[str]:
    """Return the methods of a path, for a 405."""
    return [row.method for row in DEVICE_CONTROL.values() if row.path == path]
