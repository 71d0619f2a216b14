"""Route table of the emulator: action by method and path (spec "Device Control (bridge) routes")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from clients.phone.emulator import routes_act as act
from clients.phone.emulator import routes_comms as comms
from clients.phone.emulator import routes_read as read
from clients.phone.emulator import routes_share as share
from clients.phone.emulator.device import EmulatedDevice
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.moment import Moment
from svc_proto.phone.arguments import CommandArguments
from svc_proto.phone.backend import CommandResponse

__all__ = ["METHODS", "ROUTES", "RouteAction"]

RouteAction: TypeAlias = Callable[[EmulatedDevice, CommandArguments, Moment], CommandResponse]

ROUTES: dict[tuple[str, str], RouteAction] = {
    # core
    ("GET", "/ping"): read.ping,
    ("POST", "/setup"): read.setup,
    ("GET", "/current_app"): read.current_app,
    ("POST", SVC.self_foreground): read.return_to_client,
    ("POST", HERMES.self_foreground): read.return_to_client,
    # read
    ("GET", "/screen"): read.screen,
    ("GET", "/screen_hash"): read.screen_hash_route,
    ("POST", "/diff_screen"): read.diff_screen,
    ("POST", "/find_nodes"): read.find_nodes,
    ("POST", "/describe_node"): read.describe_node,
    ("GET", "/screenshot"): read.screenshot,
    ("GET", "/get_apps"): read.get_apps,
    ("GET", "/apps"): read.get_apps,
    # act
    ("POST", "/tap"): act.tap,
    ("POST", "/tap_text"): act.tap_text,
    ("POST", "/long_press"): act.long_press,
    ("POST", "/drag"): act.drag,
    ("POST", "/type"): act.type_text,
    ("POST", "/swipe"): act.swipe,
    ("POST", "/scroll"): act.scroll,
    ("POST", "/press_key"): act.press_key,
    ("POST", "/wait"): act.wait,
    ("POST", "/open_app"): act.open_app,
    ("GET", "/clipboard"): act.read_clipboard,
    ("POST", "/clipboard"): act.write_clipboard,
    ("POST", "/media"): act.media,
    ("POST", "/send_intent"): act.send_intent,
    ("POST", "/broadcast"): act.broadcast,
    # events
    ("GET", "/events"): read.events,
    ("POST", "/events/stream"): read.events_stream,
    # sideload
    ("GET", "/location"): comms.location,
    ("POST", "/search_contacts"): comms.search_contacts,
    ("POST", "/call"): comms.call,
    ("POST", "/send_sms"): comms.send_sms,
    ("POST", "/share_media"): share.share_media,
    ("POST", "/send_mms"): share.send_mms,
}


def _methods() -> dict[str, tuple[str, ...]]:
    methods: dict[str, tuple[str, ...]] = {}
    for method, path in ROUTES:
        methods[path] = (*methods.get(path, ()), method)
    return methods


METHODS: dict[str, tuple[str, ...]] = _methods()  # methods of each path, for a 405
